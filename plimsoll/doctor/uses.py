"""What Plimsoll is used for: the registry of all uses, and what each needs besides programs.txt."""

from collections.abc import Mapping
from dataclasses import dataclass, field

# Under these, only who works on Plimsoll itself needs something.
CONTRIBUTORS = frozenset({"LAB", "LIBVIRT", "DOCKER", "LINT"})


@dataclass(frozen=True)
class Use:
    """One use: what it is for, what of ours and which Python modules it needs, what it is made of.

    `modules` has for each how to get it.
    """

    what: str
    own: tuple[str, ...] = ()
    modules: Mapping[str, str] = field(default_factory=dict)
    also: tuple[str, ...] = ()


USES = {
    "replay": Use("make replay, bin/replay, plimsoll report", own=("replay",)),
    "build": Use("make build"),
    "site": Use("make site"),
    "compose": Use("clones of lab.yml with `driver: compose`"),
    "qemu": Use("clones of lab.yml with `driver: qemu`"),
    "libvirt": Use("clones of lab.yml with `driver: libvirt`"),
    "emulated": Use("disks of lab.yml with `kind: emulated`"),
    "zfs": Use("pools and the saturators of ZFS"),
    "btrfs": Use("the saturator btrfs-send"),
    "rsync": Use("the saturator rsync"),
    "fio": Use("the saturator fio"),
    "fileio": Use("plimsoll fileio, and `fileio` of lab.yml"),
    "precondition": Use("`precondition` of lab.yml"),
    "visitors": Use("plimsoll scenario visitors"),
    "browser": Use("plimsoll scenario browser"),
    "schedule": Use("plimsoll schedule"),
    "regress": Use("plimsoll regress", modules={"otava": "make .venv/.regress"}),
    "parquet": Use(
        "plimsoll export --to parquet", modules={"pyarrow": ".venv/bin/pip install 'pyarrow>=18'"}
    ),
    "signoff-pdf": Use("the PDF of plimsoll signoff"),
    "signoff-sign": Use("signatures of plimsoll signoff"),
    "bench": Use("make bench", also=("build", "site")),
}
