"""What somebody types becomes an answer, or a sentence that says what to type."""

from pathlib import Path

import pytest

from plimsoll.init.answers import (
    Disk,
    Limits,
    Site,
    StorageBelow,
    duration_of,
    find_mount,
    find_storage,
    parse_disks,
    parse_limits,
    parse_site,
)

TWO = Site(("http://10.0.0.5", "http://10.0.0.6:8080"))

SITES = [
    ("the site of make site", "own", Site()),
    ("a clone on each of two disks", "http://10.0.0.5/ http://10.0.0.6:8080", TWO),
    ("the same with a comma", "http://10.0.0.5, http://10.0.0.6:8080", TWO),
]
NO_SITES = [
    ("nothing", " ", "say own, or the base URL"),
    ("both", "own http://10.0.0.5", "say own, or the base URL"),
    ("no URL", "10.0.0.5", "10.0.0.5: must be a base URL"),
    ("a password", "http://me:secret@10.0.0.5", "must not contain a user or password"),
    ("one URL twice", "http://10.0.0.5 http://10.0.0.5/", "the same URL twice"),
]


@pytest.mark.parametrize(("why", "text", "site"), SITES, ids=[row[0] for row in SITES])
def test_sites(why: str, text: str, site: Site) -> None:
    assert parse_site(text) == site, why


@pytest.mark.parametrize(("why", "text", "says"), NO_SITES, ids=[row[0] for row in NO_SITES])
def test_what_is_no_site(why: str, text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_site(text)


def test_disks() -> None:
    assert parse_disks("sata=/rust/lab/ nvme=/tank", Site()) == (
        Disk("sata", "/rust/lab"),
        Disk("nvme", "/tank"),
    )
    assert parse_disks("sata nvme=/tank", TWO) == (Disk("sata"), Disk("nvme", "/tank"))


NO_DISKS = [
    ("nothing", "", Site(), "name one disk or more"),
    ("no folder for a clone", "sata", Site(), "sata: say where to put the clone: sata=/folder/on/it"),
    ("no folder after all", "sata=", Site(), "sata=: say which folder"),
    ("a name in capitals", "SATA=/a", Site(), "SATA=/a: must be lower-case letters"),
    ("a folder from here on", "sata=lab", Site(), "sata=lab: must be an absolute path"),
    ("the root", "sata=/", Site(), "must be a folder other than /"),
    ("a name twice", "a=/a a=/b", Site(), "a is the name of two disks"),
    ("a folder twice", "a=/x b=/x", Site(), "/x is on one disk"),
    ("a disk too few", "sata", TWO, "2 base URLs and 1 disks: name as many"),
]


@pytest.mark.parametrize(("why", "text", "site", "says"), NO_DISKS, ids=[row[0] for row in NO_DISKS])
def test_what_is_no_disk(why: str, text: str, site: Site, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_disks(text, site)


LIMITS = [
    ("a share", "10%", Limits(1.1)),
    ("a bound", "800ms", Limits(None, 800.0)),
    ("a bound in seconds", "1.5s", Limits(None, 1500.0)),
    ("all three, with commas", "25%, 2s, errors=0.5%", Limits(1.25, 2000.0, 0.005)),
    ("no slower at all", "0%", Limits(1.0)),
]
NO_LIMITS = [
    ("nothing", "", "write how much slower"),
    ("errors alone", "errors=1%", "write how much slower"),
    ("a bare number", "10", "10: is not a limit: write 10%"),
    ("a factor", "1.1x", "1.1x: is not a limit"),
    ("errors in time", "10% errors=5ms", "errors=5ms: is not a limit"),
    ("more errors than requests", "10% errors=101%", "is more than all requests"),
    ("no more errors at all", "10% errors=0%", "no number of runs shows that there are none"),
    ("no time", "0ms", "no response takes zero time"),
    ("a hundred times as slow", "10000%", "allows over ten times"),
    ("less than nothing", "-5%", "-5%: is not a limit"),
    ("another alphabet's digits", "١٠%", "is not a limit"),
]


@pytest.mark.parametrize(("why", "text", "limits"), LIMITS, ids=[row[0] for row in LIMITS])
def test_limits(why: str, text: str, limits: Limits) -> None:
    assert parse_limits(text) == limits, why


@pytest.mark.parametrize(("why", "text", "says"), NO_LIMITS, ids=[row[0] for row in NO_LIMITS])
def test_what_is_no_limit(why: str, text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_limits(text)


def test_durations() -> None:
    assert duration_of("2h") == 7200
    with pytest.raises(ValueError, match="must be a duration, such as"):
        duration_of("two hours")


MOUNTS = r"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /tank rw - zfs tank rw
31 30 0:41 / /tank/my\040site rw - zfs tank/site rw
32 22 8:17 / /srv rw - btrfs /dev/sdb1 rw
33 22 0:50 / /tankwart rw master:1 shared:2 - tmpfs tmpfs rw
a line that is none
"""

FOLDERS = [
    ("below the root", "/home/me", ("/", "ext4", "/dev/sda1")),
    ("where a dataset is mounted", "/tank", ("/tank", "zfs", "tank")),
    ("in a dataset whose mount point has a blank", "/tank/my site/x", ("/tank/my site", "zfs", "tank/site")),
    ("beside one whose name begins alike", "/tankwart/x", ("/tankwart", "tmpfs", "tmpfs")),
]


@pytest.mark.parametrize(("why", "folder", "mount"), FOLDERS, ids=[row[0] for row in FOLDERS])
def test_what_a_folder_is_on(why: str, folder: str, mount: tuple[str, str, str]) -> None:
    assert find_mount(folder, MOUNTS) == mount, why


def test_what_lies_under_a_folder(tmp_path: Path) -> None:
    folder = str(tmp_path.resolve())

    def mount(kind: str, source: str, at: str = folder) -> str:
        return f"22 1 8:1 / {at} rw - {kind} {source} rw\n"

    assert find_storage(Disk("a"), "") == StorageBelow()
    assert find_storage(Disk("a", folder), mount("zfs", "tank/lab")) == StorageBelow(dataset="tank/lab")
    assert find_storage(Disk("a", folder), mount("btrfs", "/dev/none")) == StorageBelow(btrfs=True)
    assert find_storage(Disk("a", folder), mount("ext4", "/dev/none")) == StorageBelow()
    with pytest.raises(ValueError, match=r"lies in the dataset tank: name where one is mounted, /$"):
        find_storage(Disk("a", folder), mount("zfs", "tank", "/"))
    with pytest.raises(ValueError, match="a: /nowhere is not a folder here: create it, or name another"):
        find_storage(Disk("a", "/nowhere"), "")


def test_a_partition_stands_for_its_whole_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = tmp_path / "devices" / "nvme0n1" / "nvme0n1p2"
    part.mkdir(parents=True)
    (part / "partition").touch()
    block = tmp_path / "block"
    block.mkdir()
    (block / "nvme0n1p2").symlink_to(part)
    monkeypatch.setattr("plimsoll.init.answers._BLOCK", block)
    mount = f"22 1 8:1 / {tmp_path.resolve()} rw - ext4 /dev/nvme0n1p2 rw\n"
    assert find_storage(Disk("a", str(tmp_path.resolve())), mount) == StorageBelow(devices=("nvme0n1",))
