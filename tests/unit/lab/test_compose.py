"""The site in containers: the steps of its life, by what lies below it, and what is found of it."""

import asyncio
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from plimsoll.lab.clones.compose import Compose, ComposeSettings
from plimsoll.lab.clones.golden import Golden, SiteSettings, site_down, site_up
from plimsoll.lab.disks import make_disk
from plimsoll.lab.disks.disk import Place
from plimsoll.lab.disks.emulated import EmulatedDisk
from plimsoll.lab.disks.folder import FolderDisk
from plimsoll.lab.errors import MachineError
from plimsoll.lab.names import Label
from plimsoll.lab.steps.step import Command, Serve, Step, fill_step
from tests.support.scripted import ScriptedMachine

LABEL = Label("bench")
WORK = "/var/lib/plimsoll"
GOLDEN = Golden(SiteSettings(), WORK, "/srv/plimsoll")
MOUNTED = f"{WORK}/plimsoll-bench--hdd/mnt"
DATA = f"{MOUNTED}/plimsoll-bench--hdd"


def place_of(filesystem: str) -> Place:
    settings = EmulatedDisk.model_validate(
        {"kind": "emulated", "filesystem": filesystem, "size_bytes": "8G", "like": "rotating"}
    )
    return make_disk(settings, LABEL, "hdd", WORK).place()


def clone_on(place: Place, golden: Golden = GOLDEN, **settings: Any) -> Compose:
    said = ComposeSettings.model_validate({"driver": "compose", **settings})
    return Compose(said, LABEL.of("hdd"), place, golden)


def says(steps: Sequence[Step]) -> list[str]:
    return [step.says for step in steps]


def test_a_folder_of_ones_own_has_its_size_already() -> None:
    with pytest.raises(ValidationError, match="leave those keys out"):
        SiteSettings.model_validate({"data": "/srv/site", "size": "large"})


PLAIN = ["remove its folder", "see that there is room for the copy", "make its folder", "copy the site"]


@pytest.mark.parametrize(
    ("filesystem", "restored"),
    [
        ("ext4", PLAIN),
        ("xfs", PLAIN),
        ("btrfs", ["delete its subvolume", "take it from the snapshot"]),
        ("zfs", ["roll it back"]),
    ],
)
def test_data_are_brought_back_while_nothing_runs_and_the_disk_is_fast(
    filesystem: str, restored: list[str]
) -> None:
    steps = says(clone_on(place_of(filesystem)).reset(restore=True))
    assert steps[:2] == ["lift the disk's limits", "stop it, and keep its data"]
    assert steps[2 : 2 + len(restored)] == restored
    assert steps[2 + len(restored)] == "write everything out", "then caches are emptied"
    order = ["drop the page cache", "start it", "put its containers under the disk's limits"]
    assert [step for step in steps if step in order] == order
    limited = next(i for i, step in enumerate(steps) if step.startswith("make the disk slow"))
    assert limited > steps.index(order[-1])
    assert steps[-1] == "see that it serves"


def test_data_that_no_run_changed_stay() -> None:
    steps = says(clone_on(place_of("ext4")).reset(restore=False))
    assert not set(PLAIN) & set(steps)


def test_a_real_disk_has_no_limits() -> None:
    settings = FolderDisk.model_validate({"kind": "folder", "path": "/tank/lab", "dataset": "tank/lab"})
    clone = clone_on(make_disk(settings, LABEL, "hdd").place())
    assert not [step for step in says(clone.reset(restore=True)) if "slow" in step or "limits" in step]
    data = clone.data()
    assert (data.folder, data.dataset, data.subvolume) == ("/tank/lab", "tank/lab/plimsoll-bench--hdd", None)


def test_parts_get_datasets_with_their_properties_before_anything_is_written() -> None:
    parts = {"@database": {"recordsize": "16384", "compression": "lz4"}, "@web": {"recordsize": "131072"}}
    said = ComposeSettings.model_validate({"driver": "compose"})
    clone = Compose(said, LABEL.of("hdd"), Place("/tank", "zfs", "tank"), GOLDEN, parts)
    own = "tank/plimsoll-bench--hdd"
    words = [" ".join(step.words) for step in clone.create() if isinstance(step, Command)]
    made = [line for line in words if line.startswith(("zfs", "cp"))]
    assert made == [
        f"zfs create {own}",
        f"zfs create -o recordsize=16384 -o compression=lz4 {own}/mysql",
        f"zfs create -o recordsize=131072 {own}/wordpress",
        f"zfs create -o recordsize=131072 {own}/static",
        f"zfs create -o recordsize=131072 {own}/forum",
        f"cp -a --reflink=auto -- {GOLDEN.folder}/. /{own}",
        f"zfs snapshot -r {own}@plimsoll-pristine",
    ]
    mounts = [line.split()[-1] for line in words if line.startswith("mountpoint")]
    assert mounts == [f"/{own}{below}" for below in ("", "/mysql", "/wordpress", "/static", "/forum")]
    back = [step.words[-1] for step in clone.reset(True) if step.says == "roll it back"]  # type: ignore[union-attr]
    assert back == [f"{dataset}@plimsoll-pristine" for dataset in [own, *clone.data().part_of]]
    assert clone.data().parts == {
        "@database": (f"{own}/mysql",),
        "@web": (f"{own}/wordpress", f"{own}/static", f"{own}/forum"),
    }
    assert clone_on(Place("/tank", "zfs", "tank")).data().parts == {}, "only if they are asked for"


@pytest.mark.parametrize("filesystem", ["ext4", "btrfs", "zfs"])
def test_nothing_stands_for_what_no_step_before_captured(filesystem: str) -> None:
    settings = EmulatedDisk.model_validate(
        {"kind": "emulated", "filesystem": filesystem, "size_bytes": "8G", "like": "sata-ssd"}
    )
    made = make_disk(settings, LABEL, "hdd", WORK)
    clone = clone_on(made.place())
    known: dict[str, str] = {}
    life = [
        *GOLDEN.make(),
        *made.create(),
        *clone.create(),
        *made.limit(),
        *clone.reset(False),
        *clone.reset(True),
        *clone.stop(),
        *clone.destroy(),
        *made.destroy(),
        *GOLDEN.forget(),
    ]
    for step in life:
        fill_step(step, known)
        if isinstance(step, Command) and step.capture:
            known[step.capture] = "x"


def test_it_listens_on_a_free_port_or_on_the_one_that_is_given() -> None:
    free = clone_on(place_of("ext4"))
    assert "choose a free port" in says(free.reset(False))
    assert free.target({"site_port": "4711"}).url == "http://127.0.0.1:4711"
    with pytest.raises(KeyError):
        free.target({})
    fixed = clone_on(place_of("ext4"), port=8081, address="10.0.0.7")
    assert "choose a free port" not in says(fixed.reset(False))
    assert fixed.target({}).url == "http://10.0.0.7:8081"
    last = fixed.reset(False)[-1]
    assert isinstance(last, Serve)
    assert last.connect_to == "10.0.0.7:8081"


def test_what_is_kept_of_it_in_a_run() -> None:
    kept = clone_on(place_of("zfs"), buffer_pool="64M").describe()
    assert kept["folder"] == DATA
    assert kept["dataset"] == "plimsoll-bench--hdd/site/plimsoll-bench--hdd"
    assert kept["data"] == "copied, then rolled back to a snapshot"
    assert kept["emulated"] == "zfs on a loop device, 120 MB/s, 200 operations/s (like rotating)"
    assert (kept["buffer_pool"], kept["site"]["size"]) == ("64M", "small")


def test_scripts_get_their_settings_and_none_of_the_callers(tmp_path: Path) -> None:
    script = tmp_path / "site" / "up"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\nenv | grep -E '^(SITE|BACKEND|KEEP|DB_|WP_|IMAGES)' | sort\n")
    script.chmod(0o755)
    callers = {**os.environ, "SITE_SIZE": "large", "KEEP": "1", "BACKEND_DIR": "/home", "IMAGES": "1"}
    step = site_up(str(tmp_path), "own", "/srv/a b", {"SITE_PORT": "81"}, "start", 60)
    done = subprocess.run(step.words, env=callers, capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout.splitlines() == ["BACKEND_DIR=/srv/a b", "SITE_NAME=own", "SITE_PORT=81"]


def test_only_what_is_to_be_removed_is_removed() -> None:
    kept, removed = (site_down("/p", "own", "/srv", "end", keep) for keep in (True, False))
    assert "KEEP=1" in kept.words
    assert "KEEP=1" not in removed.words


def test_the_site_that_is_copied_is_marked_as_whole_last() -> None:
    steps = GOLDEN.make()
    assert says(steps)[-1] == "mark it as complete"
    assert steps[-1] == Command(steps[-1].says, ("touch", "--", f"{WORK}/golden-small-1-block/whole"))
    assert says(GOLDEN.forget())[0] == "mark it as incomplete"


def test_each_site_that_is_copied_has_a_folder_of_its_own() -> None:
    kinds = [
        {},
        {"seed": 2},
        {"size": "large"},
        {"editor": "classic"},
        {"upgrade_zip": "/a.zip"},
        {"upgrade_zip": "/b.zip"},
    ]
    folders = {Golden(SiteSettings.model_validate(kind), WORK, "/p").folder for kind in kinds}
    assert len(folders) == len(kinds)
    assert Golden(SiteSettings(data="/srv/site"), WORK, "/p").folder == "/srv/site"


SITE = "plimsoll-bench--hdd"


class Docker:
    """Answers as docker, find and zfs would."""

    def __init__(self, rows: Sequence[str] = (), networks: Sequence[str] = ()) -> None:
        self.rows, self.networks = rows, networks
        self.installed = self.answers = True
        self.folders: dict[str, str] = {}

    def __call__(self, command: Sequence[str]) -> tuple[int, str, str]:
        line = " ".join(command)
        if line.startswith("sh -c command -v docker"):
            return (0, "/usr/bin/docker\n", "") if self.installed else (127, "", "")
        if line.startswith("realpath"):
            return 0, command[-1] + "\n", ""
        if command[0] == "docker" and not self.answers:
            return 1, "", "Cannot connect to the Docker daemon"
        wanted = next((word for word in command if word.startswith("label=")), "")
        if line.startswith("docker ps"):
            return 0, "".join(row + "\n" for row in self.rows if wanted.endswith(f"={SITE}")), ""
        if line.startswith("docker network"):
            return 0, "".join(row + "\n" for row in self.networks if wanted.endswith(f"={SITE}")), ""
        if command[0] == "find":
            return (
                (0, self.folders[command[1]], "") if command[1] in self.folders else (1, "", "no such file")
            )
        return 1, "", ""


def found(docker: Docker, filesystem: str = "ext4") -> list[str]:
    machine = ScriptedMachine(docker)
    return [one.what for one in asyncio.run(clone_on(place_of(filesystem)).find(machine))]


def test_containers_networks_and_data_are_found_in_the_order_of_removal() -> None:
    docker = Docker([f"c1\t{SITE}-db\t{SITE}\t{DATA}"], [f"n1\t{SITE}_inside\t{SITE}"])
    docker.folders[DATA] = "d 7\n"
    assert found(docker) == [f"the container {SITE}-db", f"the network {SITE}_inside", f"the folder {DATA}"]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (f"c1\t{SITE}-db\t{SITE}\t/home/me/site", "a site of that name on another folder"),
        (f"c1\t{SITE}-2-db\t{SITE}-2\t{DATA}", "another backend"),
        ("c1\tx", "half a line"),
    ],
)
def test_containers_of_others_are_not_found(row: str, why: str) -> None:
    assert found(Docker([row])) == [], why


def test_the_networks_of_somebody_elses_site_stay() -> None:
    assert found(Docker([f"c1\t{SITE}-db\t{SITE}\t/home/me/site"], [f"n1\t{SITE}_inside\t{SITE}"])) == []


def test_without_docker_there_are_no_containers_but_there_may_be_data() -> None:
    docker = Docker()
    docker.installed = False
    docker.folders[DATA] = "d 7\n"
    assert found(docker) == [f"the folder {DATA}"]


def test_a_docker_that_does_not_answer_is_not_taken_for_an_empty_one() -> None:
    docker = Docker()
    docker.answers = False
    with pytest.raises(MachineError, match="Cannot connect"):
        found(docker)


@pytest.mark.parametrize(
    ("filesystem", "folders", "there"),
    [
        ("ext4", {DATA: "l 7\n"}, []),
        ("ext4", {DATA: "f 7\n"}, []),
        ("ext4", {f"{DATA}.pristine": "d 7\n"}, []),
        ("btrfs", {DATA: "d 256\n"}, [f"the subvolume {DATA}"]),
        ("btrfs", {f"{DATA}.pristine": "d 256\n"}, [f"the subvolume {DATA}.pristine"]),
        ("btrfs", {DATA: "d 300\n"}, [f"the folder {DATA}"]),
    ],
)
def test_data_are_found_by_name_and_kind(filesystem: str, folders: dict[str, str], there: list[str]) -> None:
    docker = Docker()
    docker.folders = folders
    assert found(docker, filesystem) == there


def removal(step: Step) -> None:
    assert isinstance(step, Command)
    subprocess.run(step.words, capture_output=True, timeout=20, check=True)


def test_a_folder_that_became_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").touch()
    (tmp_path / SITE).symlink_to(mine)
    for step in clone_on(Place(str(tmp_path))).destroy()[1:]:
        removal(step)
    assert (mine / "thesis.txt").exists()


def test_what_is_removed_already_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / SITE / "mysql").mkdir(parents=True)
    for _ in range(2):
        for step in clone_on(Place(str(tmp_path))).destroy()[1:]:
            removal(step)
    assert list(tmp_path.iterdir()) == []
