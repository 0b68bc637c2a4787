"""Clones with QEMU: the commands, and the page that describes them."""

import re

import pytest
import yaml
from pydantic import ValidationError

from plimsoll.lab.clones.qemu import Qemu, QemuSettings, mac
from plimsoll.lab.disks.disk import Place
from plimsoll.lab.steps.step import Command, Serve, Step, as_shell
from tests.support.programs import DOCS, ROOT

NAME = "plimsoll-bench--hdd"
IMAGE = "/srv/site.qcow2"
COLD = Command("make caches cold", ("true",))
LIMIT = Command("make it slow", ("slow",))
UNLIMIT = Command("make it fast", ("fast",))


def settings(**keys: object) -> QemuSettings:
    return QemuSettings.model_validate({"driver": "qemu", "image": IMAGE, "port": 8081} | keys)


def clone(place: Place | None = None, **keys: object) -> Qemu:
    return Qemu(settings(**keys), NAME, place or Place("/mnt/hdd"))


def lines(steps: list[Step]) -> list[str]:
    """What `lab plan` prints, with scripts by their last line."""
    return [re.sub(r"sh -c '.*?\n?([^\n]*)' sh ", "sh ", as_shell(step), flags=re.DOTALL) for step in steps]


def qemu_words(qemu: Qemu) -> tuple[str, ...]:
    return next(s.words for s in qemu.reset(False) if isinstance(s, Command) and "-daemonize" in s.words)


ZFS = Place("/tank/lab", "zfs", "tank/lab")
BTRFS = Place("/mnt/b", "btrfs")


@pytest.mark.parametrize(
    ("what", "place", "keys", "expected"),
    [
        (
            "a copy of the image",
            Place("/mnt/hdd"),
            {},
            [
                "room in /mnt/hdd for what /srv/site.qcow2 takes and 268435456 bytes",
                f"mkdir -m 0711 -- /mnt/hdd/{NAME}",
                f"qemu-img convert -t writeback -f qcow2 -O qcow2 {IMAGE} /mnt/hdd/{NAME}/disk.qcow2",
            ],
        ),
        (
            "a raw copy of a raw image: never guessed, since a guest could write what is guessed from",
            Place("/mnt/hdd"),
            {"image": "/srv/a.img", "format": "raw"},
            [
                "room in /mnt/hdd for what /srv/a.img takes and 268435456 bytes",
                f"mkdir -m 0711 -- /mnt/hdd/{NAME}",
                f"qemu-img convert -t writeback -f raw -O raw /srv/a.img /mnt/hdd/{NAME}/disk.raw",
            ],
        ),
        (
            "a file over the image",
            Place("/mnt/hdd"),
            {"full": False},
            [
                "room in /mnt/hdd for 268435456 bytes",
                f"mkdir -m 0711 -- /mnt/hdd/{NAME}",
                f"qemu-img create -q -f qcow2 -F qcow2 -b {IMAGE} /mnt/hdd/{NAME}/disk.qcow2",
            ],
        ),
        (
            "on ZFS a dataset of its own, and a snapshot of it",
            ZFS,
            {"format": "raw"},
            [
                "room in /tank/lab for what /srv/site.qcow2 takes and 268435456 bytes",
                f"zfs create tank/lab/{NAME}",
                f"mountpoint -q -- /tank/lab/{NAME}",
                f"qemu-img convert -t writeback -f qcow2 -O raw {IMAGE} /tank/lab/{NAME}/disk.raw",
                f"zfs snapshot tank/lab/{NAME}@plimsoll-pristine",
            ],
        ),
        (
            "on Btrfs a subvolume of its own, and a snapshot of it",
            BTRFS,
            {"full": False},
            [
                "room in /mnt/b for 268435456 bytes",
                f"btrfs subvolume create /mnt/b/{NAME}",
                f"qemu-img create -q -f qcow2 -F qcow2 -b {IMAGE} /mnt/b/{NAME}/disk.qcow2",
                f"btrfs subvolume snapshot -r /mnt/b/{NAME} /mnt/b/{NAME}.pristine",
            ],
        ),
        (
            "a ZFS volume as large as the image's disk",
            ZFS,
            {"format": "zvol", "volblocksize": "16K"},
            [
                "room in /tank/lab for what /srv/site.qcow2 takes and 268435456 bytes",
                f"mkdir -m 0711 -- /tank/lab/{NAME}",
                f"disk_size=$(sh qcow2 {IMAGE})",
                'zfs create -s -o volblocksize=16K -V "${disk_size}" ' + f"tank/lab/{NAME}",
                f"test -b /dev/zvol/tank/lab/{NAME}",
                f"qemu-img convert -t writeback -n -f qcow2 -O raw {IMAGE} /dev/zvol/tank/lab/{NAME}",
                f"zfs snapshot tank/lab/{NAME}@plimsoll-pristine",
            ],
        ),
    ],
)
def test_create_makes_the_disk(what: str, place: Place, keys: dict[str, object], expected: list[str]) -> None:
    assert lines(clone(place, **keys).create())[1:] == expected, what


def test_reset_starts_it_fast_with_cold_caches_and_makes_the_disk_slow_when_it_serves() -> None:
    place = Place("/mnt/hdd", cold=(COLD,), limit=(LIMIT,), unlimit=(UNLIMIT,), group="${disk_group}")
    steps = clone(place, accelerator="tcg").reset(restore=True)
    assert [step.says for step in steps] == [
        "make it fast",
        "switch it off",
        "remove its folder",
        "see that there is room for it",
        "make its folder",
        "copy the image",
        "make caches cold",
        "make the pipes of its monitor",
        "start it",
        "see whether it runs on kvm or tcg",
        "see that the site serves",
        "make it slow",
    ]
    start = next(step for step in steps if step.says == "start it")
    assert isinstance(start, Command)
    assert start.words[:6] == (
        "sh",
        "-c",
        start.words[2],
        "sh",
        "${disk_group}",
        "qemu-system-x86_64",
    )
    assert steps[-2] == Serve("see that the site serves", "http://127.0.0.1:8081", None, 600)


@pytest.mark.parametrize(
    ("what", "place", "keys", "expected"),
    [
        ("a dataset", ZFS, {}, [f"zfs rollback -r tank/lab/{NAME}@plimsoll-pristine"]),
        ("a volume", ZFS, {"format": "zvol"}, [f"zfs rollback -r tank/lab/{NAME}@plimsoll-pristine"]),
        (
            "a subvolume",
            BTRFS,
            {},
            [f"sh /mnt/b/{NAME}", f"btrfs subvolume snapshot /mnt/b/{NAME}.pristine /mnt/b/{NAME}"],
        ),
    ],
)
def test_snapshots_bring_it_back(
    what: str, place: Place, keys: dict[str, object], expected: list[str]
) -> None:
    steps = clone(place, **keys).reset(restore=True)
    at = next(i for i, step in enumerate(steps) if step.says == "make the pipes of its monitor")
    assert lines(steps[1:at]) == expected, what


def test_without_restore_the_disk_stays_and_the_guest_is_shut_down() -> None:
    says = [step.says for step in clone().reset(restore=False)]
    assert says[:3] == ["shut it down", "make the pipes of its monitor", "start it"]


def test_a_free_port_is_chosen_where_none_is_said() -> None:
    qemu = clone(port=None)
    assert "choose a free port" in [step.says for step in qemu.reset(False)]
    assert qemu.target({"site_port": "4711"}).url == "http://127.0.0.1:4711"
    with pytest.raises(KeyError):
        qemu.target({})


@pytest.mark.parametrize(
    ("what", "keys", "word"),
    [
        ("the site's port", {}, "user,id=net,hostfwd=tcp:127.0.0.1:8081-:80"),
        (
            "the guest's SSH too, on an address of the lab's network",
            {"ssh_port": 2222, "address": "10.0.0.7"},
            "user,id=net,hostfwd=tcp:10.0.0.7:8081-:80,hostfwd=tcp:10.0.0.7:2222-:22",
        ),
        (
            "a bridge",
            {"bridge": "br0", "target": "http://10.0.0.9", "port": None},
            "bridge,id=net,br=br0",
        ),
        ("its own network card, always the same", {}, f"virtio-net-pci,netdev=net,mac={mac(NAME)}"),
        ("the name by which it is found", {}, f"guest={NAME}"),
        ("memory", {"memory_bytes": "1G"}, "1024M"),
    ],
)
def test_qemu_is_told(what: str, keys: dict[str, object], word: str) -> None:
    assert word in qemu_words(clone(None, **keys)), what


def test_kvm_is_taken_where_qemu_can_have_it() -> None:
    words = qemu_words(clone())
    assert [words[i + 1] for i, word in enumerate(words) if word == "-accel"] == ["kvm", "tcg"]


def test_commas_in_a_path_are_doubled_so_that_no_option_hides_in_it() -> None:
    words = qemu_words(clone(Place("/mnt/a,readonly=on,b")))
    at = f"/mnt/a,,readonly=on,,b/{NAME}"
    assert f"file={at}/disk.qcow2,format=qcow2,if=virtio,cache=none" in words
    assert f"pipe,id=monitor,path={at}/monitor" in words
    assert f"file,id=console,path={at}/console" in words
    assert f"/mnt/a,readonly=on,b/{NAME}/pid" in words


@pytest.mark.parametrize(
    ("what", "keys"),
    [
        ("a relative image", {"image": "site.qcow2"}),
        ("an image elsewhere", {"image": "/srv/../etc/site.qcow2"}),
        ("an image of another format", {"image": "/srv/site.vmdk"}),
        ("an image that is a protocol", {"image": "nbd://host/site.qcow2"}),
        ("a reference in the image's name", {"image": "/srv/${site_port}.qcow2"}),
        ("a line's end in the image's name", {"image": "/srv/a\nb.qcow2"}),
        ("a linked clone that is raw", {"full": False, "format": "raw"}),
        ("a linked clone that is a volume", {"full": False, "format": "zvol"}),
        ("blocks of a volume without one", {"volblocksize": "16K"}),
        ("a bridge that nobody knows the site's address on", {"bridge": "br0", "port": None}),
        ("a bridge with an option in its name", {"bridge": "br0,helper=/x", "target": "http://a"}),
        ("a port on a bridge", {"bridge": "br0", "target": "http://a"}),
        ("a target without a bridge", {"target": "http://a"}),
        ("a reference in the target", {"bridge": "br0", "target": "http://${x}", "port": None}),
        ("an address with an option in it", {"address": "127.0.0.1,restrict=off"}),
        ("a name as address", {"address": "localhost"}),
        ("one port for two", {"ssh_port": 8081}),
        ("too little memory", {"memory_bytes": "1M"}),
        ("a cache that there is not", {"cache": "none,readonly=on"}),
    ],
)
def test_what_cannot_be_is_refused(what: str, keys: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        settings(**keys)


def test_a_volume_needs_a_dataset() -> None:
    with pytest.raises(ValueError, match="zvol"):
        clone(format="zvol")


def test_destroy_switches_off_and_removes_by_name_alone() -> None:
    assert lines(clone().destroy()) == [
        f"sh {NAME} /mnt/hdd/{NAME}/monitor.in 0",
        f"sh /mnt/hdd/{NAME}",
    ]
    assert lines(clone(ZFS, format="zvol").destroy())[1:] == [
        f"sh tank/lab/{NAME}",
        f"sh /tank/lab/{NAME}",
    ]


def test_what_is_described_has_the_disk_and_how_it_is_used() -> None:
    assert clone().describe() == {
        "driver": "qemu",
        "disk": f"/mnt/hdd/{NAME}/disk.qcow2",
        "image": IMAGE,
        "format": "qcow2",
        "full": True,
        "cache": "none",
        "memory_bytes": 2 << 30,
        "cpus": 2,
        "accelerator": "auto",
    }


PAGE = (DOCS / "vm.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("example", re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
def test_its_examples_are_valid(example: str) -> None:
    QemuSettings.model_validate(yaml.safe_load(example)["clone"])


def test_every_setting_of_make_vm_image_is_documented() -> None:
    script = (ROOT / "site" / "vm-image").read_text(encoding="utf-8")
    settings_there = set(re.findall(r"^(VM_[A-Z_]+)=", script, re.MULTILINE))
    assert settings_there == set(re.findall(r"^\| `(VM_[A-Z_]+)` \|", PAGE, re.MULTILINE))
