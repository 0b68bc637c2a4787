"""docs/import-export.md says what is there."""

from pathlib import Path

from plimsoll.analysis.exchange.csvfile import COLUMNS
from plimsoll.analysis.exchange.exchange import FORMATS
from plimsoll.analysis.exchange.prometheus import prometheus_text
from plimsoll.rundir.read import RunDirectory
from tests.support.programs import DOCS
from tests.support.rundir import traffic, write_run

TEXT = (DOCS / "import-export.md").read_text(encoding="utf-8")


def test_every_column_and_format_is_documented() -> None:
    for name in (*COLUMNS, *FORMATS):
        assert f"`{name}`" in TEXT, name


def test_every_metric_is_documented(tmp_path: Path) -> None:
    measures = {
        "load": {"unit": "ms", "count": 1, "max": 1.0},
        "cls": {"unit": "score", "count": 1, "max": 1.0},
    }
    load = {"digest": "d", "settings": {"timeout_s": 30}}
    summary = {"requests": {}, "measures": measures}
    run = write_run(tmp_path / "run", traffic(60, 60), summary=summary, load=load)
    _, text = prometheus_text(RunDirectory.open(run))
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert len(names) > 15
    assert [name for name in sorted(names) if f"`{name}`" not in TEXT] == []
    documented = {part for part in TEXT.split("`") if part.startswith("plimsoll_") and part.isidentifier()}
    assert documented - names - {"plimsoll_listener"} == set()
