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


def pdf_of(*pages: str) -> bytes:
    """Return a PDF whose pages have a line each. It has no table of its objects: readers find them."""
    objects = ["<</Type/Catalog/Pages 2 0 R>>", "", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids = []
    for page in pages:
        kids.append(f"{len(objects) + 1} 0 R")
        drawn = f"BT /F 9 Tf ({page}) Tj ET"
        objects.append(
            f"<</Type/Page/Parent 2 0 R/Resources<</Font<</F 3 0 R>>>>/Contents {len(objects) + 2} 0 R>>"
        )
        objects.append(f"<</Length {len(drawn)}>>stream\n{drawn}\nendstream")
    objects[1] = f"<</Type/Pages/Kids[{' '.join(kids)}]/Count {len(kids)}>>"
    body = "".join(f"{number} 0 obj\n{each}\nendobj\n" for number, each in enumerate(objects, 1))
    return f"%PDF-1.4\n{body}trailer\n<</Root 1 0 R>>\nstartxref\n0\n%%EOF\n".encode()


def stand_in_browser(folder: Path) -> Path:
    """Return a program that prints as a browser does; its PDF is two pages with the sum alone."""
    path = folder / "chromium"
    path.write_text(
        """#!/bin/sh
for word; do
    case $word in
    --print-to-pdf=*) target=${word#*=} ;;
    file://*) page=${word#file://} ;;
    esac
done
digits=$(sed -n 's/.*id="sums-sha256">\\([0-9a-f]*\\)<.*/\\1/p' "$page")
cat > "$target" <<PDF
"""
        + pdf_of("0" * 64, "0" * 64).decode().replace("0" * 64, "$digits")
        + "PDF\n"
    )
    path.chmod(0o755)
    return path
