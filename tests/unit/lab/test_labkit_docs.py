"""docs/observers.md and docs/tuning.md name every column and key, and none that there is not."""

import re
from collections.abc import Iterator

import pytest
import yaml
from pydantic import BaseModel

from plimsoll.lab.observers import OBSERVERS, ObserverSettings
from plimsoll.lab.observers.settings import FsyncProbeSettings, MariadbSettings, PhpSettings
from plimsoll.lab.tuning import Tuning
from plimsoll.lab.tuning.keys import DatasetTuning, DiskTuning, VmTuning, ZfsTuning
from tests.support.paths import DOCS

NAMES = [observer.name for observer in OBSERVERS]
UNITS = {
    "_bytes_per_s": "bytes a second",
    "_ms_per_s": "ms a second",
    "_per_s": "a second",
    "_percent": "%",
    "_ms": "ms",
    "_bytes": "bytes",
    "_count": "",
}


def _rows(file: str) -> Iterator[list[str]]:
    """The rows of the tables of a document whose first cell is a name in backquotes."""
    for line in (DOCS / file).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            yield [cells[0].strip("`"), *cells[1:]]


def _unit(column: str) -> str:
    return next(unit for suffix, unit in UNITS.items() if column.endswith(suffix))


def test_every_column_is_documented_with_its_unit_and_source() -> None:
    documented = [row for row in _rows("observers.md") if row[0].split(".")[0] in NAMES and len(row) == 3]
    documented = [row for row in documented if row[0] not in _observer_keys()]
    made = [
        [
            f"{observer.name}.{column.name}",
            _unit(column.name),
            re.sub(r"\b(POOL/VDEV|DEVICE|POOL) ", "", column.source),
        ]
        for observer in OBSERVERS
        for column in observer.columns
    ]
    assert documented == made


def test_every_observer_has_columns() -> None:
    assert all(observer.columns for observer in OBSERVERS)


def _observer_keys() -> set[str]:
    parts: dict[str, type[BaseModel]] = {
        "fsync": FsyncProbeSettings,
        "mariadb": MariadbSettings,
        "php": PhpSettings,
    }
    keys = set(ObserverSettings.model_fields) - set(parts)
    return keys | {f"{part}.{name}" for part, model in parts.items() for name in model.model_fields}


def test_every_key_of_the_observers_is_documented() -> None:
    assert _observer_keys() <= {row[0] for row in _rows("observers.md")}


TUNING: dict[str, type[BaseModel]] = {
    "disks.DEVICE.": DiskTuning,
    "datasets.DATASET.": DatasetTuning,
    "zfs.": ZfsTuning,
    "vm.": VmTuning,
}


def test_every_key_of_tuning_is_documented_with_what_it_does() -> None:
    keys = {
        f"{prefix}{name}": field.description or ""
        for prefix, model in TUNING.items()
        for name, field in model.model_fields.items()
    }
    branches = {prefix.split(".")[0] for prefix in TUNING}
    keys |= {
        name: field.description or "" for name, field in Tuning.model_fields.items() if name not in branches
    }
    documented = {row[0]: row[1] for row in _rows("tuning.md")}
    assert documented == {key: text.rstrip(".") for key, text in keys.items()}
    assert all(documented.values())


@pytest.mark.parametrize(
    "example", re.findall(r"```yaml\n(.*?)```", (DOCS / "tuning.md").read_text("utf-8"), re.DOTALL)
)
def test_the_example_is_valid(example: str) -> None:
    Tuning.model_validate(yaml.safe_load(example)["tuning"])
