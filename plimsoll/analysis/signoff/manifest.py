"""The files of a sign-off, and the two lists that bind them together.

SHA256SUMS has the sum of every file of raw data, of the gates and of signoff.json. Its own sum is printed on
every page, so that a sheet of paper names all that it stands on. The pages cannot be in it, since they state
its sum. MANIFEST has the sums of all files of the folder, of the pages and of SHA256SUMS too, and is signed.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from plimsoll.analysis.signoff.sums import Sum, sha256_of, sums_text

MANIFEST = "MANIFEST"
SIGNATURE = f"{MANIFEST}.sig"
EVIDENCE = "SHA256SUMS"
PAGE = "signoff.html"
PDF = "signoff.pdf"
DATA = "signoff.json"
GATES = "gates.yml"

RAW_BYTES = "raw_bytes"  # of DATA: the size of each file of raw data, by its name in EVIDENCE

# What the evidence is judged by and comes to: it has sums among the evidence too, and so a part in its sum.
JUDGED_BY = (GATES, DATA)
# A sign-off has all of these; the PDF is there where a browser was.
ALWAYS = (EVIDENCE, GATES, DATA, PAGE)


def write_manifest(folder: Path) -> None:
    """Write the manifest of all that stands in `folder`. Raises OSError."""
    names = sorted(path.name for path in folder.iterdir())
    sums = [Sum(name, sha256_of(folder / name)) for name in names]
    (folder / MANIFEST).write_bytes(sums_text(sums))


def problems_of(manifest: Sequence[Sum], there: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with the list itself, `there` being the names in its folder (hostile). Pure."""
    names = [each.name for each in manifest]
    yield from (f"{name}: is not in {MANIFEST}" for name in ALWAYS if name not in names)
    yield from (f"{MANIFEST}: {name} is no file of this folder" for name in names if "/" in name)
    yield from (
        f"{MANIFEST}: {name} is in it twice" for name in dict.fromkeys(names) if names.count(name) > 1
    )
    yield from (f"{name}: was added" for name in sorted({*there} - {*names, MANIFEST, SIGNATURE}))
