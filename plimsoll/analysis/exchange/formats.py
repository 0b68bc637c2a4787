"""The registry of export formats: adding one is its module and its line here."""

from plimsoll.analysis.exchange.csvfile import CSV
from plimsoll.analysis.exchange.format import Format
from plimsoll.analysis.exchange.hdrlog import HDR
from plimsoll.analysis.exchange.parquetfile import PARQUET
from plimsoll.analysis.exchange.prometheus import PROMETHEUS

FORMATS: dict[str, Format] = {each.name: each for each in (CSV, PARQUET, HDR, PROMETHEUS)}


def formats_help() -> str:
    """Return what `--to` says of all formats."""
    return "; ".join(f"{each.name}: {each.holds}" for each in FORMATS.values()) + "."
