"""The tables of keys and columns in docs/, from the models and registries that they describe.

`make docs` writes each between its marks. One without marks gets them, under a heading at the end of its
page: a new disk, clone, saturator or observer needs no line of documentation but its own descriptions.
"""

import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, get_args, get_origin

import click
import locust  # noqa: F401 it patches ssl, so it comes before whatever else uses that
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from plimsoll.analysis.evidence.host_rows import SUBJECTS
from plimsoll.cli import main as plimsoll
from plimsoll.lab.clones import DRIVERS
from plimsoll.lab.clones.golden import SiteSettings
from plimsoll.lab.clones.proxmox import DiskLimits
from plimsoll.lab.disks import DISKS
from plimsoll.lab.experiment import labfile
from plimsoll.lab.experiment.status.watch import Status
from plimsoll.lab.fileio.fio import FsyncMatrix
from plimsoll.lab.fileio.measure import COLUMNS, FSYNC_COLUMNS
from plimsoll.lab.hosts.hostsfile import HostSettings
from plimsoll.lab.observers import OBSERVERS, ObserverSettings
from plimsoll.lab.observers.observer import Observer
from plimsoll.lab.saturators import SATURATORS
from plimsoll.lab.saturators.backup import RepositorySink, StorageSink
from plimsoll.lab.saturators.saturator import SaturatorSettings
from plimsoll.lab.saturators.sinks import FolderSink, LocalSink, RamDiskSink, RemoteSink
from plimsoll.lab.tuning import Tuning
from plimsoll.lab.tuning.keys import DatasetTuning, DiskTuning, VmTuning, ZfsTuning
from plimsoll.scenarios import find_scenario
from plimsoll.scenarios.running.clonelist import Clone
from plimsoll.scenarios.running.settings import IteratedSettings, flag

DOCS = Path(__file__).parents[1] / "docs"
REPLAY = DOCS.parent / "bin" / "replay"
Models = Sequence[tuple[str, type[BaseModel]]]  # each with what stands before its keys, such as `phases.`
SINKS: list[type[BaseModel]] = [RamDiskSink, FolderSink, LocalSink, RemoteSink, StorageSink, RepositorySink]
_CODE = re.compile(r"--[a-z][a-z0-9-]+|https?://[^\s;,]+[^\s;,.]|PLIMSOLL_[A-Z_]+")  # in a text of help
UNITS = {
    "_bytes_per_s": "bytes a second",
    "_ms_per_s": "ms a second",
    "_per_s": "a second",
    "_percent": "%",
    "_ms": "ms",
    "_bytes": "bytes",
    "_count": "",
}


class Table(NamedTuple):
    """A table of a page; `says` stands above it where the page has no place for it yet."""

    page: str
    name: str
    lines: list[str]
    says: str = ""


def tables() -> Iterator[Table]:
    """Yield every table, in the order in which a page would get them."""
    yield from _log_formats()
    yield from _lab()
    for disk in DISKS:
        yield _settings(disk.settings, disk.name, f"{disk.name}.")
    for driver in DRIVERS:
        prefix = {"static": "clone.", "compose": "compose."}.get(driver.name, "")
        yield _settings(driver.settings, driver.name, prefix)
    yield Table("proxmox.md", "limits", keys([("limits.DISK.", DiskLimits)]))
    yield Table("hosts.md", "hosts", keys([("", HostSettings)]))
    yield Table("status.md", "json", _table(("key", ""), list(_json_keys("", Status))))
    yield Table("report.md", "options", _options("report"))
    yield Table("fileio.md", "options", _options("fileio"))
    for name, columns in (("columns", COLUMNS), ("columns of fsyncs", FSYNC_COLUMNS)):
        rows = [(column, f"`{key}`", meaning) for column, (key, meaning) in columns.items()]
        yield Table("fileio.md", name, _table(("column", "JSON", "meaning"), rows))
    yield Table("status.md", "options", _options("status"))
    yield Table("status.md", "notices", _options("run", only=("--notify-command", "--webhook-file")))
    yield from _scenarios()
    yield from _tuning()
    yield Table("factors.md", "names", _factors())
    yield Table("saturators.md", "every saturator", keys([("", SaturatorSettings)]))
    for kind in SATURATORS:
        if lines := keys([("", kind.settings)], SaturatorSettings.model_fields):
            yield Table("saturators.md", kind.name, lines, _first_paragraph(kind.settings))
    yield Table("saturators.md", "sinks", _sinks())
    own = [(f"{each.name}.", each.own.model) for each in OBSERVERS if each.own]
    yield Table("observers.md", "settings", keys([("", ObserverSettings), *own]))
    for observer in OBSERVERS:
        yield Table("observers.md", observer.name, _columns(observer))
    figures = [
        (each.title, "; ".join(row.title for row in each.rows), each.about.removesuffix("."))
        for each in SUBJECTS
    ]
    yield Table("report.md", "the host", _table(("figure", "rows", ""), figures))
    signs = [(row.said, row.means, row.look_at) for each in SUBJECTS for row in each.rows if row.means]
    yield Table("stalls.md", "signs", _table(("sign", "usually", "look at"), signs))


def _options(*names: str, only: Collection[str] = ()) -> list[str]:
    """Return the options of a command of `plimsoll`, or `only` those, in the words of its help."""
    context = click.Context(plimsoll, info_name="plimsoll")
    for name in names:
        assert isinstance(context.command, click.Group)  # noqa: S101 names below a command are commands
        below = context.command.get_command(context, name)
        assert below is not None  # noqa: S101 of this name
        context = click.Context(below, info_name=name, parent=context)
    options = [one for one in context.command.params if isinstance(one, click.Option)]
    records = [one.get_help_record(context) for one in options if not only or set(one.opts) & set(only)]
    rows = [
        (f"`{names}`".replace(" / ", "`, `"), _CODE.sub(r"`\g<0>`", " ".join(text.split())))
        for names, text in filter(None, records)
    ]
    return _table(("option", ""), rows)


def _scenarios() -> Iterator[Table]:
    """Yield the options that scenarios share, those of accounts and of what is left, and each one's own."""
    shared = [*map(flag, IteratedSettings.model_fields), "--json", "--progress"]
    yield Table("scenarios.md", "common", _options("scenario", "download", only=shared))
    accounts = ("--user", "--password-file")
    yield Table("scenarios.md", "accounts", _options("scenario", "save-article", only=accounts))
    yield Table("scenarios.md", "plimsoll.yml", keys([("", Clone)]))
    left = ("--run", "--yes", "--dry-run", "--json")
    yield Table("scenarios.md", "clean-up", _options("scenario", "clean-up", only=left))
    for name in ("save-article", "upload-images", "download"):
        own = [flag(field) for field in find_scenario(name).settings().__annotations__]
        yield Table("scenarios.md", name, _options("scenario", name, only=own))


def _json_keys(prefix: str, model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Yield the keys of what a command prints, those of a model below the key that it stands under."""
    for name, field in model.model_fields.items():
        key = prefix + (field.serialization_alias or name)
        yield f"`{key}`", _says(field)
        entries = "[]" if get_origin(field.annotation) is list else ""
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from _json_keys(f"{key}{entries}.", kind)


def _log_formats() -> Iterator[Table]:
    """Yield the log formats that `bin/replay` knows, with and without a name."""
    ran = subprocess.run([REPLAY, "reference"], capture_output=True, text=True, check=True, timeout=60)
    formats = json.loads(ran.stdout)["formats"]
    for one in formats:
        one["shown"] = f"JSON: {one['keys']}" if one["keys"] else f"`{one['log']}`".replace("\t", "\\t")
    named = [
        (
            f"`{one['name']}`",
            one["shown"],
            ", ".join(f"`{text}`" for text in one["times"]) or "any `%x`",
            one["when"],
        )
        for one in formats
        if one["name"]
    ]
    head = ("name", "log-format", "date, time", "the time is when the request was")
    yield Table("log-formats.md", "presets", _table(head, named))
    unnamed = [(one["label"], one["shown"], "yes" if one["found"] else "") for one in formats if one["label"]]
    yield Table(
        "log-formats.md", "others", _table(("log", "`--format` (`FORMAT=`)", "read without it"), unnamed)
    )


def keys(models: Models, without: Collection[str] = ()) -> list[str]:
    """Return a table of the keys of `models`; no line where there is no key."""
    rows = [row for prefix, model in models for row in _rows(prefix, model) if row[0] not in without]
    if not any(default for _, default, _ in rows):
        return _table(("key", ""), [(f"`{key}`", says) for key, _, says in rows])
    return _table(("key", "default", ""), [(f"`{key}`", default, says) for key, default, says in rows])


def _rows(prefix: str, model: type[BaseModel]) -> Iterator[tuple[str, str, str]]:
    for name, field in model.model_fields.items():
        yield f"{prefix}{name}", _default(field), _says(field)


def _sinks() -> list[str]:
    """Return the keys of all sinks, each with the values of `sink.to` that it belongs to."""
    rows = [
        (
            f"`sink.{name}`",
            _default(field),
            f"{get_args(sink.model_fields['to'].annotation)[0]}: {_says(field)}",
        )
        for sink in SINKS
        for name, field in sink.model_fields.items()
        if name != "to"
    ]
    return _table(("key", "default", ""), rows)


def _begun(text: str) -> str:
    """Return a sentence as it goes on after a colon."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _says(field: FieldInfo) -> str:
    return (field.description or "").removesuffix(".")


def _default(field: FieldInfo) -> str:
    value = field.default
    if field.is_required():
        return "required"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple) and value and all(isinstance(word, str) for word in value) and len(value) < 5:
        return f"`[{', '.join(value)}]`"
    if isinstance(value, int | float):
        for unit, size in (("G", 1 << 30), ("M", 1 << 20)):
            if value and value % size == 0:
                return f"`{value // size}{unit}`"
        return f"`{value:g}`"
    return f"`{value}`" if isinstance(value, str | Path) and value != "" else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return [f"| {' | '.join(row)} |".replace("|  |", "| |") for row in cells] if rows else []


def _settings(model: type[BaseModel], name: str, prefix: str) -> Table:
    """Return the table of one member of a registry, on the page that its errors name."""
    schema = model.model_config.get("json_schema_extra")
    page = str(schema["manual"]) if isinstance(schema, dict) and "manual" in schema else "docs/lab.md"
    return Table(page.removeprefix("docs/"), name, keys([(prefix, model)]), _first_paragraph(model))


def _first_paragraph(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").partition("\n\n")[0].split())


def _lab() -> Iterator[Table]:
    sections: dict[str, Models] = {
        "experiment": [("", labfile.Lab)],
        "fileio": [("fileio.", labfile.Fileio), ("fileio.fsync.", FsyncMatrix)],
        "phases": [("phases.", labfile.Phases)],
        "limits": [("limits.", labfile.Limits)],
        "notify": [("notify.", labfile.Notify)],
        "site": [("site.", SiteSettings)],
        "backends": [("backends.", labfile.Backend)],
        "scenarios": [("scenarios.", labfile.ScenarioChoice)],
        "together": [("together.", labfile.Member)],
        "factors": [("factors.", labfile.Factor)],
        "replay": [("options.", labfile.ReplayOptions)],
    }
    for name, models in sections.items():
        yield Table("lab.md", name, keys(models))
    yield Table("precondition.md", "precondition", keys([("precondition.", labfile.Precondition)]))
    pages = {driver.name: _settings(driver.settings, driver.name, "").page for driver in DRIVERS}
    drivers = [
        (
            f"`{driver.name}`",
            _first_paragraph(driver.settings).removesuffix("."),
            "" if pages[driver.name] == "lab.md" else f"[{pages[driver.name]}]({pages[driver.name]})",
        )
        for driver in DRIVERS
    ]
    yield Table("lab.md", "drivers", _table(("driver", "the clone", ""), drivers))


def _tuning() -> Iterator[Table]:
    parts: dict[str, type[BaseModel]] = {
        "disks.DEVICE.": DiskTuning,
        "datasets.DATASET.": DatasetTuning,
        "zfs.": ZfsTuning,
        "vm.": VmTuning,
    }
    branches = [prefix.split(".")[0] for prefix in parts]
    for prefix, model in parts.items():
        yield Table("tuning.md", prefix.split(".")[0], keys([(prefix, model)]))
    yield Table("tuning.md", "hugepages", keys([("", Tuning)], branches))


def _factors() -> list[str]:
    """Return the factors that need no key, those that set the same part of lab.yml in one row."""
    rows: dict[str, list[str]] = {}
    for name, path in labfile.SHORT.items():
        place, _, key = path.replace(".*", "").rpartition(".")
        where, shown = (place, name) if key == name else (f"{place}.{key}", name.replace("_", "-"))
        rows.setdefault(where, []).append(shown)
    named = [(", ".join(f"`{name}`" for name in names), f"`{place}`") for place, names in rows.items()]
    return _table(("name", "sets"), named)


def _columns(observer: Observer) -> list[str]:
    rows = []
    for column in observer.columns:
        unit = next(unit for suffix, unit in UNITS.items() if column.name.endswith(suffix))
        source = re.sub(r"\b(POOL/VDEV|DEVICE|POOL) ", "", column.source)
        rows.append((f"`{observer.name}.{column.name}`", unit, source))
    return _table(("column", "unit", "source"), rows)


def page(text: str, of_page: Sequence[Table]) -> str:
    """Return the text of a page with its tables as they are now. Pure."""
    for table in of_page:
        begin, end = f"<!-- {table.name}: written by make docs -->", f"<!-- end of {table.name} -->"
        block = "\n".join([begin, "", *table.lines, "", end])
        before, found, rest = text.partition(begin)
        if found:
            text = before + block + rest.partition(end)[2]
        else:
            says = f"{table.says}\n\n" if table.says else ""
            text = f"{text.rstrip()}\n\n## {table.name}\n\n{says}{block}\n"
    return text


def pages() -> dict[Path, str]:
    """Return each page that has such tables, as it should be."""
    found: dict[str, list[Table]] = {}
    for table in tables():
        found.setdefault(table.page, []).append(table)
    return {DOCS / name: page((DOCS / name).read_text("utf-8"), of_page) for name, of_page in found.items()}


def main() -> None:
    """Write the pages; with `check`, say which are stale."""
    stale = [(path, text) for path, text in pages().items() if path.read_text("utf-8") != text]
    if sys.argv[1:] == ["check"]:
        if stale:
            sys.exit(f"{', '.join(path.name for path, _ in stale)}: stale: run make docs")
        return
    for path, text in stale:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
