"""What an installation keeps under share/: python tools/packages/shared.py SOURCE SHARE.

The site and the examples, the documentation, a man page a command, and what completes the flags.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

_KEPT = ("docker-compose.yml", "site", "examples", "docs")
_COMPLETIONS = {"bash": "bash-completion/completions/{}", "fish": "fish/vendor_completions.d/{}.fish"}


def main(source: Path, share: Path) -> None:
    """Write the folder `share` of what is in `source`, whose bin/replay is built."""
    own = share / "plimsoll"
    own.mkdir(parents=True)
    for name in _KEPT:
        path = source / name
        if path.is_dir():
            shutil.copytree(path, own / name, symlinks=True)
        else:
            shutil.copy2(path, own / name)
    environment = os.environ | {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "tools/manual.py"], cwd=source, env=environment, check=True)
    shutil.copytree(source / "build" / "man", share / "man")
    programs = {
        "plimsoll": [sys.executable, "-m", "plimsoll"],
        "replay": [str(source / "bin" / "replay")],
    }
    for name, program in programs.items():
        for shell, place in _COMPLETIONS.items():
            command = [*program, "completion", shell]
            done = subprocess.run(command, cwd=source, env=environment, check=True, stdout=subprocess.PIPE)
            path = share / place.format(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(done.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
