"""All export formats; what writes one is loaded when it is asked for."""

from typing import NamedTuple


class Format(NamedTuple):
    """`holds` completes the help of `--to`; `prepare` says where the format's `Prepare` is."""

    holds: str
    prepare: str


FORMATS = {
    "csv": Format("a row a request", "csvfile:CSV"),
    "parquet": Format("a row a request, in typed columns", "parquetfile:prepare"),
    "hdr": Format("an HdrHistogram interval log", "hdrlog:HDR"),
    "prometheus": Format("the run's figures", "prometheus:prepare"),
}
