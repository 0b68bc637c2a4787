"""What follows from answers: files that Plimsoll reads, lengths that fill the time, figures that exist."""

from typing import Any

import jsonschema
import pytest
import yaml

from plimsoll.analysis.compare import gates
from plimsoll.cli import schema_of
from plimsoll.common.validation import parse_model
from plimsoll.init.answers import Disk, Limits, Log, Site, StorageBelow
from plimsoll.init.experiment import Answers, Lengths, gates_text, lab_text, lengths, metric, quote_yaml
from tests.support.labfile import parse_lab

DISKS = (Disk("sata", "/rust/lab"), Disk("nvme", "/tank/lab"))
ZFS = (StorageBelow(dataset="rust/lab"), StorageBelow(dataset="tank/lab"))
PLAIN = (StorageBelow(devices=("sda",)), StorageBelow(btrfs=True))
URLS = Site(("http://10.0.0.5", "http://10.0.0.6"))
LONG = Lengths(4, 400)


def answered(**keys: Any) -> Answers:
    """Return answers, but for what `keys` say otherwise."""
    usual: dict[str, Any] = {
        "name": "move",
        "log": Log("access.log", 50.0),
        "site": Site(),
        "disks": DISKS,
        "below": ZFS,
        "lasts_s": 7200.0,
        "limits": Limits(1.1),
    }
    return Answers(**(usual | keys))


ROWS = [
    ("own clones on ZFS are sent", answered(), "zfs-send"),
    ("own clones on other file systems: fio", answered(below=PLAIN), "fio"),
    ("on ZFS and not: fio on both, which is the same for both", answered(below=(ZFS[0], PLAIN[0])), "fio"),
    ("sites that exist, on ZFS", answered(site=URLS), "zfs-send"),
    ("sites that exist, on others", answered(site=URLS, below=PLAIN), "fio"),
    (
        "sites whose disks nobody knows",
        answered(site=URLS, disks=(Disk("a"), Disk("b")), below=(StorageBelow(),) * 2),
        None,
    ),
    ("one disk alone", answered(disks=DISKS[:1], below=ZFS[:1]), "zfs-send"),
    (
        "a name that YAML would take for a number",
        answered(name="2026", disks=(Disk("1", "/a"), Disk("no", "/b"))),
        None,
    ),
    ("an absolute bound", answered(limits=Limits(None, 800.0, 0.01)), "zfs-send"),
    ("both bounds", answered(limits=Limits(1.1, 800.0)), "zfs-send"),
]


@pytest.mark.parametrize(("why", "answers", "saturator"), ROWS, ids=[row[0] for row in ROWS])
def test_both_files_are_read(why: str, answers: Answers, saturator: str | None) -> None:
    text, limits = lab_text(answers, LONG), gates_text(answers, LONG)
    lab = parse_lab(text)
    assert [backend.name for backend in lab.backends] == [disk.name for disk in answers.disks]
    kinds = {one.kind for backend in lab.backends if (one := backend.saturator or lab.saturator)}
    assert kinds == ({answers.saturator} if answers.saturator else set())
    if saturator:
        assert answers.saturator == saturator, why
    found = parse_model(limits, "gates.yml", gates.Gates, gates.MANUAL, gates.problems).gates
    assert [gate.metric for gate in found][-1] == "error share"
    assert any(gate.phase == "during" for gate in found) == bool(answers.saturator)
    assert (lab.phases.before_s > 0) == bool(answers.saturator)
    for file, written in (("lab.yml", text), ("gates.yml", limits)):
        checker = jsonschema.Draft202012Validator(schema_of(file))
        assert [error.message for error in checker.iter_errors(yaml.safe_load(written))] == []
    for line in f"{text}{limits}".splitlines():
        assert len(line) <= 120


HOSTILE = [
    "a b.log",
    "it's.log",
    'say "hi".log',
    "{a: b}.log",
    "#.log",
    "a: b",
    "läufe*.log",
    "- x",
    "2026",
    "no",
    "*x",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_of_a_log_stays_what_it_is(name: str) -> None:
    text = lab_text(answered(log=Log(name)), LONG)
    lab = parse_lab(text)
    assert lab.scenarios[0].options["log"] == name
    assert yaml.safe_load(quote_yaml(name)) == name


def test_the_baseline_s_bound_holds_in_every_phase_and_the_absolute_one_while_disks_are_busy() -> None:
    read = yaml.safe_load(gates_text(answered(limits=Limits(1.25, 800.0, 0.002)), LONG))["gates"]
    assert read == [
        {
            "scenario": "replay",
            "phase": "during",
            "metric": "p99.9",
            "at_most_ratio": 1.25,
            "at_most_ms": 800,
        },
        {"scenario": "replay", "phase": "whole", "metric": "p99.9", "at_most_ratio": 1.25},
        {"scenario": "replay", "metric": "error share", "at_most_more": 0.002},
    ]


RATES = [
    ("a busy site", 50.0, "p99.9"),
    ("a thousand requests sharp", 10.0, "p99.9"),
    ("fewer", 9.99, "p99"),
    ("hardly any", 0.5, "p50"),
    ("nobody looked", None, "p99.9"),
]


@pytest.mark.parametrize(("why", "rate", "figure"), RATES, ids=[row[0] for row in RATES])
def test_the_figure_is_one_that_the_log_has_requests_for(why: str, rate: float | None, figure: str) -> None:
    assert metric(Log("a", rate), 100.0) == figure, why


def about_s(each: Lengths) -> float:
    """Two disks, 100 s for each, and 20 s between runs."""
    return 200 + 2 * each.repeats * (each.run_s + 20)


TIMES = [
    ("the shortest that can be judged", 840.0, Lengths(4, 60)),
    ("longer runs first", 4000.0, Lengths(4, 452)),
    ("the longest runs", 5700.0, Lengths(4, 664)),
    ("then more of them", 7560.0, Lengths(6, 592)),
    ("at most twenty", 1e6, Lengths(20, 900)),
]


@pytest.mark.parametrize(("why", "lasts_s", "wanted"), TIMES, ids=[row[0] for row in TIMES])
def test_runs_fill_the_time(why: str, lasts_s: float, wanted: Lengths) -> None:
    found = lengths(lasts_s, about_s)
    assert found == wanted, why
    assert about_s(found) <= lasts_s


def test_a_time_that_is_too_short_says_what_would_do() -> None:
    with pytest.raises(ValueError, match="take 14 min: give at least 14m"):
        lengths(839.0, about_s)
