"""A toy driver, disk, saturator, observer and tuning key, added as somebody would who extends the lab.

Each is one file, and one line in its registry; the key is a line alone. That the report draws the observer is
one line in another registry: analysis knows nothing of the lab.
"""

import shutil
from pathlib import Path

from tests.support.programs import ROOT

_TOYS = ROOT / "tests" / "support" / "toys"
# The folder of the package that each toy's file goes to, and its line in the registry there, after the last.
FILES = [
    ("boat.py", "lab/clones", '        "boat:BOAT",\n', '        "proxmox:PROXMOX",\n'),
    ("tub.py", "lab/disks", '        "tub:TUB",\n', '        "emulated:EMULATED",\n'),
    ("tide.py", "lab/saturators", '        "tide:TIDE",\n', '        "backup:BACKUP",\n'),
    ("wind.py", "lab/observers", '        "wind:WIND",\n', '        "php:OBSERVER",\n'),
]
_KNOTS = r"""HostRow("wind", "wind", "kn", r"wind\.knots_count", 5, means="A storm.", look_at="the sky")"""
DRAWN = f"""    HostSubject("wind", "The wind", "How it blows.", ({_KNOTS},)),\n"""

SWELL = '    swell: int | None = Field(None, description="How high the waves are.")\n'


def copy_with_toys(folder: Path) -> Path:
    """Return `folder` with a copy of this checkout in it that has the toys, and nothing else that is new."""
    shutil.copytree(ROOT / "plimsoll", folder / "plimsoll")
    shutil.copytree(ROOT / "tools", folder / "tools", ignore=shutil.ignore_patterns("node_modules"))
    for name in ("tests", "docs", "replay", "bin"):
        (folder / name).symlink_to(ROOT / name)
    for name, place, line, last in FILES:
        package = folder / "plimsoll" / place
        shutil.copy2(_TOYS / name, package / name)
        _add_line(package / "__init__.py", line, last)
    rows = folder / "plimsoll" / "analysis" / "evidence" / "host_rows.py"
    _add_line(rows, DRAWN, "SUBJECTS = (\n")
    keys = folder / "plimsoll" / "lab" / "tuning" / "keys.py"
    _add_line(keys, SWELL, '    """Settings of the kernel\'s memory, in /proc/sys/vm."""\n\n')
    return folder


def _add_line(registry: Path, line: str, after: str) -> None:
    text = registry.read_text(encoding="utf-8")
    assert text.count(after) == 1, registry
    registry.write_text(text.replace(after, after + line), encoding="utf-8")
