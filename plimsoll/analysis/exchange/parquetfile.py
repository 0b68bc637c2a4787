"""Records as Parquet: typed columns, nulls for what is absent, facts of the run in the file's metadata."""

import json
from typing import IO, Any

import numpy as np

from plimsoll.analysis.exchange.csvfile import COLUMNS, Advance, ColumnValues, Writer, columns
from plimsoll.common.errors import SettingsError
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import RECORD

_REMEDY = (
    "Parquet needs pyarrow (55 MB), which is not installed: .venv/bin/pip install 'pyarrow>=18' in the "
    "project's folder, or choose --to csv"
)


def _write(run: RunDirectory, file: IO[bytes], advance: Advance) -> None:
    """Write all records, a row group a block. Raises SettingsError where pyarrow is missing."""
    arrow, parquet = _arrow()
    schema = _schema(run, arrow, columns(run, np.empty(0, dtype=RECORD)))
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for block in run.requests.blocks():
            arrays = [_array(column, arrow) for column in columns(run, block).values()]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
            advance(len(block))


def prepare(run: RunDirectory, advance: Advance) -> tuple[int, Writer]:
    """Return the number of requests and what writes the rows. Raises PlimsollError without pyarrow."""
    _arrow()  # before a file is opened
    return run.requests.count, lambda file: _write(run, file, advance)


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise SettingsError(_REMEDY) from None
    return pyarrow, pyarrow.parquet


def _schema(run: RunDirectory, arrow: Any, empty: dict[str, ColumnValues]) -> Any:
    fields = []
    for name, (unit, meaning) in COLUMNS.items():
        about = {"meaning": meaning} | ({"unit": unit} if unit else {})
        fields.append(arrow.field(name, _array(empty[name], arrow).type, metadata=about))
    facts = run.facts.model_dump(
        mode="json", include={"scenario", "backend", "repeat", "started_at", "loop", "speed", "program"}
    )
    return arrow.schema(fields, metadata={"plimsoll": json.dumps(facts | {"status": run.status})})


def _array(column: ColumnValues, arrow: Any) -> Any:
    if column.texts is None:
        return arrow.array(column.values, mask=column.absent)
    indices = arrow.array(column.values.astype(np.int32), mask=column.absent)
    return arrow.DictionaryArray.from_arrays(indices, arrow.array(column.texts, arrow.string()))
