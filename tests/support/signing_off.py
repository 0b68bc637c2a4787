"""Sign-offs for tests: an experiment, its gates, and the command."""

from pathlib import Path

from click.testing import CliRunner, Result

from plimsoll.cli import main
from tests.support.comparable import write_both

GATES = """gates:
  - {scenario: replay, phase: during, at_most_ratio: 1.10}
  - {scenario: replay, metric: error share, at_most_more: 0.001}
"""
BACKENDS = ("--baseline", "sata", "--candidate", "nvme")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["signoff", *map(str, arguments)])


def gates(folder: Path, text: str = GATES) -> Path:
    path = folder / "limits.yml"
    path.write_text(text)
    return path


def signed_off(folder: Path, *further: str | Path, ratio: float = 1.0) -> Path:
    """Write an experiment and its sign-off; return the sign-off's folder."""
    write_both(folder / "experiment", ratio)
    out = folder / "signed"
    result = run(folder / "experiment", *BACKENDS, "--gates", gates(folder), "--out", out, *further)
    assert result.exit_code in (0, 1), result.output
    return out


def stand_in_browser(folder: Path) -> Path:
    """Return a program that prints as a browser does; its PDF holds no more than the sum of the page."""
    path = folder / "chromium"
    path.write_text(
        """#!/bin/sh
for word; do
    case $word in
    --print-to-pdf=*) target=${word#*=} ;;
    file://*) page=${word#file://} ;;
    esac
done
{ echo %PDF-1.4; sha256sum < "$page"; } > "$target"
"""
    )
    path.chmod(0o755)
    return path
