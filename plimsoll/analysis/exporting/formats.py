"""The registry of export formats: adding one is its module and its line here."""

from plimsoll.analysis.exporting.csvfile import CSV
from plimsoll.analysis.exporting.format import Format
from plimsoll.analysis.exporting.hdrlog import HDR
from plimsoll.analysis.exporting.parquetfile import PARQUET
from plimsoll.analysis.exporting.prometheus import PROMETHEUS

FORMATS: dict[str, Format] = {each.name: each for each in (CSV, PARQUET, HDR, PROMETHEUS)}


def formats_help() -> str:
    """Return what `--to` says of all formats."""
    return "; ".join(f"{each.name}: {each.holds}" for each in FORMATS.values()) + "."
