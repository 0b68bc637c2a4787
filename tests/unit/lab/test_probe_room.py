"""Room is added up by file system: what fits alone need not fit together."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from plimsoll.lab.experiment.check import (
    Claim,
    FileSystem,
    VolumeUses,
    collect_claims,
    file_system,
    find_growth_risks,
    find_shortages,
)
from plimsoll.lab.experiment.labfile import Lab
from plimsoll.lab.experiment.rig import build_rig
from tests.support.scripted import ScriptedMachine

GIB = 1 << 30
TANK = FileSystem("the pool tank", "/tank", 10 * GIB)
ROOT = FileSystem("/dev/sda1", "/", 10 * GIB)
BTRFS = FileSystem("/dev/sdb1", "/fast", 10 * GIB, clones=True)


def claim(backend: str, on: FileSystem, gib: float, most: float = 0, of: FileSystem | None = None) -> Claim:
    return Claim(backend, "disk", "the clone", on, int(gib * GIB), int(most * GIB), of)


FITS = [
    ("each fits, and both do", [claim("a", TANK, 4), claim("b", TANK, 6)], []),
    (
        "each fits, and both do not",
        [claim("a", TANK, 4), claim("b", TANK, 7)],
        [
            "the clone of a (4.0 GiB) and the clone of b (7.0 GiB) do not fit together: 11.0 GiB are needed "
            "and the pool tank has 10.0 GiB: make room, or choose another folder"
        ],
    ),
    ("on two file systems", [claim("a", TANK, 7), claim("b", ROOT, 7)], []),
    (
        "one that does not fit anyway is told alone",
        [claim("a", TANK, 4), claim("b", TANK, 11)],
        [
            "disk: the clone does not fit: 11.0 GiB are needed and /tank has 10.0 GiB: make room, or choose "
            "another folder"
        ],
    ),
    (
        "many are counted",
        [claim(name, TANK, 2) for name in "abcdefgh"],
        [
            "the clone of a (2.0 GiB), the clone of b (2.0 GiB), the clone of c (2.0 GiB) and 5 more do not "
            "fit together: 16.0 GiB are needed and the pool tank has 10.0 GiB: make room, or choose another "
            "folder"
        ],
    ),
    (
        "copies that share what they copy do not add up",
        [claim("a", BTRFS, 7, of=BTRFS), claim("b", BTRFS, 7, of=BTRFS)],
        [],
    ),
    (
        "copies from elsewhere do",
        [claim("a", BTRFS, 4, of=ROOT), claim("b", BTRFS, 7, of=ROOT)],
        [
            "the clone of a (4.0 GiB) and the clone of b (7.0 GiB) do not fit together: 11.0 GiB are needed "
            "and /dev/sdb1 has 10.0 GiB: make room, or choose another folder"
        ],
    ),
]


@pytest.mark.parametrize(("says", "claims", "told"), FITS, ids=[row[0] for row in FITS])
def test_what_does_not_fit(says: str, claims: Sequence[Claim], told: list[str]) -> None:
    assert [what for _, what in find_shortages(claims)] == told, says


MAY_GROW = [
    ("to no more than there is room for", [claim("a", TANK, 1, most=9)], []),
    (
        "to more",
        [claim("a", TANK, 1, most=20)],
        [
            "what is made fits, but guests may write more: the clone of a to 20.0 GiB; the pool tank has "
            "10.0 GiB, and a guest that runs out of room gets errors"
        ],
    ),
    (
        "to more together",
        [claim("a", TANK, 1, most=6), claim("b", TANK, 1, most=6)],
        [
            "what is made fits, but guests may write more: the clone of a to 6.0 GiB and the clone of b to "
            "6.0 GiB; the pool tank has 10.0 GiB, and a guest that runs out of room gets errors"
        ],
    ),
    ("what does not fit at all is no caution", [claim("a", TANK, 11, most=20)], []),
]


@pytest.mark.parametrize(("says", "claims", "told"), MAY_GROW, ids=[row[0] for row in MAY_GROW])
def test_what_may_grow(says: str, claims: Sequence[Claim], told: list[str]) -> None:
    assert list(find_growth_risks(claims)) == told, says


SHOWN = [
    ("a partition", "/srv\n/dev/sda1 ext4 100 40 60 40% /\n", FileSystem("/dev/sda1", "/srv", 60)),
    ("a dataset", "/t/a\ntank/a zfs 100 40 60 40% /t/a\n", FileSystem("the pool tank", "/t/a", 60)),
    ("one of zfs-fuse", "/t/a\ntank/a fuse 100 40 60 40% /t/a\n", FileSystem("the pool tank", "/t/a", 60)),
    ("over a network", "/n\nhost:/x nfs4 100 40 60 40% /n\n", FileSystem("/n", "/n", 60)),
    ("one of two RAM disks", "/run/a\ntmpfs tmpfs 100 40 60 40% /run\n", FileSystem("/run", "/run/a", 60)),
    (
        "one that clones files",
        "/b\n/dev/sdb btrfs 9 4 5 4% /b\n",
        FileSystem("/dev/sdb", "/b", 5, clones=True),
    ),
    ("a mount point with a blank", "/a b\n/dev/sdc xfs 9 4 5 4% /a b\n", FileSystem("/dev/sdc", "/a b", 5)),
]


@pytest.mark.parametrize(("says", "shown", "found"), SHOWN, ids=[row[0] for row in SHOWN])
def test_file_systems_as_df_shows_them(says: str, shown: str, found: FileSystem) -> None:
    assert file_system(shown) == found, says


def _machine(golden: bool) -> ScriptedMachine:
    """A machine with 10 GiB on one file system, an image of 1 GiB whose disk has 20, and perhaps a site."""

    def answer(command: Sequence[str]) -> tuple[int, str, str]:
        line = " ".join(command)
        if "df -P" in line:
            return 0, f"/var\n/dev/sda1 ext4 9 4 {10 * GIB} 4% /\n", ""
        if command[0] == "du":
            return (0, f"{3 * GIB}\t{command[-1]}\n", "") if golden or ".qcow2" in line else (1, "", "none")
        if "qemu-img measure" in line:
            return 0, f"{20 * GIB}\n", ""
        if tuple(command[:2]) == ("test", "-f"):
            return int(not golden), "", ""
        return 0, "", ""

    return ScriptedMachine(answer)


def _claims(golden: bool, *backends: str) -> list[Claim]:
    def backend(number: int, said: str) -> dict[str, object]:
        disk, _, driver = said.partition("+")
        disks = {
            "emulated": {"kind": "emulated", "filesystem": "ext4", "size_bytes": "6G"},
            "resilvered": {"kind": "emulated", "filesystem": "zfs", "size_bytes": "4G"},
            "folder": {"kind": "folder", "path": "/srv"},
        }
        clones = {"compose": {"driver": "compose"}, "qemu": {"driver": "qemu", "image": "/vm.qcow2"}}
        busy: dict[str, object] = {"saturator": {"kind": "resilver"}} if disk == "resilvered" else {}
        return {"name": f"b{number}", "disk": disks[disk], "clone": clones[driver], **busy}

    lab = Lab.model_validate(
        {
            "name": "room",
            "out": Path("/tmp"),
            "backends": [backend(number, said) for number, said in enumerate(backends)],
            "scenarios": [{"scenario": "download"}],
        }
    )
    machine = _machine(golden)

    async def claimed() -> list[Claim]:
        return await collect_claims(
            [await build_rig(lab, one, machine, lambda *_: None) for one in lab.backends], VolumeUses()
        )

    return asyncio.run(claimed())


def test_two_disks_of_one_machine_and_the_copies_on_them() -> None:
    claims = _claims(True, "emulated+compose", "emulated+compose")
    assert [(one.on.name, one.bytes // GIB) for one in claims] == [
        ("/dev/sda1", 6),
        ("the disk of b0", 3),
        ("/dev/sda1", 6),
        ("the disk of b1", 3),
    ]
    assert "the disk of b0 (6.0 GiB) and the disk of b1 (6.0 GiB) do not fit together" in "".join(
        what for _, what in find_shortages(claims)
    )


def test_a_disk_that_is_resilvered_has_two_sides() -> None:
    first, second, _ = _claims(True, "resilvered+compose")
    assert [(one.on.name, one.bytes // GIB) for one in (first, second)] == [("/dev/sda1", 4)] * 2
    assert (second.key, second.what) == ("saturator", "the second side that resilver gives it")


def test_the_site_to_copy_counts_too_while_it_is_still_to_be_made() -> None:
    claims = _claims(False, "folder+compose", "folder+compose")
    assert [(one.what, one.bytes) for one in claims] == [
        ("the clone", 1_400_000_000),
        ("the clone", 1_400_000_000),
        ("the site to copy", 1_400_000_000),
    ]


def test_a_virtual_machine_takes_what_its_image_takes_and_may_grow_to_its_disk() -> None:
    (claim,) = _claims(True, "folder+qemu")
    assert claim.bytes == 3 * GIB + (256 << 20)
    assert claim.most_bytes == 20 * GIB
