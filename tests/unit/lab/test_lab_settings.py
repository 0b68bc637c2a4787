"""lab.yml: all that is wrong is said at once, with line, key and remedy."""

from pathlib import Path

import pytest

from plimsoll.cli import schema_of
from plimsoll.common.errors import SettingsError
from plimsoll.common.validation import parse_model
from plimsoll.lab.clones.clone import Target
from plimsoll.lab.experiment.design import PlannedRun
from plimsoll.lab.experiment.labfile import MANUAL, Lab
from plimsoll.lab.experiment.load import member_command
from plimsoll.lab.experiment.problems import key_problems
from plimsoll.lab.experiment.scenarios import ScenarioTraits, read_traits
from tests.support.programs import ROOT

GOOD = """
name: lab
backends:
  - name: a
    clone: {driver: static, target: "http://127.0.0.1:8080"}
scenarios:
  - scenario: download
"""

OWN = "tuning: {disks: {'@disk': {scheduler: none}}, datasets: {'@disk': {sync: always}}}"
PARTS = "tuning: {datasets: {'@database': {recordsize: 16K}, '@web': {}}}"


def read(text: str) -> Lab:
    return parse_model(text, "lab.yml", Lab, MANUAL, key_problems)


EXAMPLES = [path for path in sorted((ROOT / "examples").glob("*.yml")) if "\nbackends:" in path.read_text()]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_are_right(path: Path) -> None:
    lab = read(path.read_text(encoding="utf-8"))
    assert read_traits(lab, str(path)).keys() == {
        *(choice.called for choice in lab.scenarios),
        *(choice.called_in_full(member) for choice in lab.scenarios for member in choice.members),
    }


@pytest.mark.parametrize(
    ("what", "text", "said"),
    [
        (
            "a name with a space",
            GOOD.replace("name: lab", "name: my lab"),
            ["lab.yml:2: name: must be lower-case letters"],
        ),
        (
            "no backend",
            "name: lab\nbackends: []\nscenarios: [{scenario: download}]",
            ["lab.yml:2: backends: must not be empty"],
        ),
        (
            "an unknown key",
            GOOD + "repeat: 3\n",
            ["lab.yml:8: repeat: is not a known key: did you mean repeats? (see docs/lab.md)"],
        ),
        (
            "a backend that stands twice",
            GOOD.replace(
                "scenarios:", '  - name: a\n    clone: {driver: static, target: "http://h"}\nscenarios:'
            ),
            ["lab.yml:6: backends.1.name: a is already the name of backends.0"],
        ),
        (
            "a host that there is not",
            GOOD.replace("    clone", "    host: pve1\n    clone"),
            ["lab.yml:5: backends.0.host: pve1 is not one of hosts: local"],
        ),
        (
            "compose without a disk",
            GOOD.replace('static, target: "http://127.0.0.1:8080"', "compose"),
            ["backends.0.disk: is missing: compose puts the clone on a disk"],
        ),
        (
            "a disk to be made under a host that exists",
            GOOD.replace(
                "    clone", "    disk: {kind: emulated, filesystem: ext4, size_bytes: 1G}\n    clone"
            ),
            ["backends.0.disk: must be a folder: static is on a disk that exists"],
        ),
        (
            "the own disk, of which nothing is known",
            GOOD.replace("    clone", f"    {OWN}\n    clone"),
            ["tuning.datasets.@disk: its disk has no dataset", "tuning.disks.@disk: no device of its disk"],
        ),
        (
            "parts of a clone on a disk without datasets",
            GOOD.replace('static, target: "http://127.0.0.1:8080"', "compose").replace(
                "    clone", f"    disk: {{kind: folder, path: /srv}}\n    {PARTS}\n    clone"
            ),
            [
                "lab.yml:6: backends.0.tuning.datasets.@database: its disk has no dataset: put the clone",
                "lab.yml:6: backends.0.tuning.datasets.@web: its disk has no dataset: put the clone on ZFS",
            ],
        ),
        (
            "parts of a clone that the lab does not make",
            GOOD.replace("    clone", f"    {PARTS}\n    clone"),
            [
                "datasets.@database: only a clone of the driver compose has it on a dataset of its own",
                "datasets.@web: only a clone of the driver compose has it on a dataset of its own",
            ],
        ),
        (
            "a part that there is not",
            GOOD.replace("    clone", f"    {OWN.replace('@disk', '@www')}\n    clone"),
            [
                "datasets.@www: must be @disk, @database, @web or a dataset's name, such as tank/site",
                "disks.@www: must be a device's name",
            ],
        ),
        (
            "two scenarios of a name",
            GOOD + "  - scenario: download\n",
            ["scenarios.1.name: download is already the name of scenarios.0"],
        ),
        (
            "an upgrade alone, for so long",
            GOOD.replace("scenario: download", "scenario: upgrade-wordpress"),
            ["lab.yml:7: scenarios.0.phases: upgrade-wordpress ends by itself, so its phases cannot"],
        ),
        (
            "a phase after one without an end",
            GOOD + "phases: {during_s: null, after_s: 9}\n",
            ["phases: after_s: nothing can follow a during_s of null"],
        ),
        (
            "a reference in a command",
            GOOD.replace(':8080"', ':8080", reset: [["${loop}"]]'),
            ["must not contain ${"],
        ),
        (
            "several at once, in the order of the file",
            GOOD.replace("name: lab", "name: Lab") + "order: baab\nrepeats: 0\nwork: relative\n",
            ["lab.yml:2: name:", "lab.yml:8: order:", "lab.yml:9: repeats:", "lab.yml:10: work:"],
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line_and_key(what: str, text: str, said: list[str]) -> None:
    with pytest.raises(SettingsError) as error:
        read(text)
    lines = str(error.value).splitlines()
    assert len(lines) == len(said)
    for line, part in zip(lines, said, strict=True):
        assert part in line


@pytest.mark.parametrize(
    ("what", "scenario", "said"),
    [
        (
            "a scenario that there is not",
            "{scenario: uplode}",
            "scenarios.0.scenario: uplode does not exist; choose one of replay, download",
        ),
        (
            "an option that there is not",
            "{scenario: download, options: {iteration: 3}}",
            "scenarios.0.options.iteration: is not a setting",
        ),
        ("a value that cannot be", "{scenario: download, options: {users: 0}}", "scenarios.0.options.users:"),
        (
            "what the lab sets this",
            "{scenario: visitors, options: {duration_s: 3}}",
            "duration_s: the lab sets this by the phases; leave it out",
        ),
        ("a replay without a log", "{scenario: replay}", "scenarios.0.options.log: is missing"),
        (
            "a replay to elsewhere",
            "{scenario: replay, options: {log: a, flags: [--target=http://b]}}",
            "the lab sets this",
        ),
        (
            "a replay with limits of its own",
            "{scenario: replay, options: {log: a, flags: [--fail-over=p99=1s]}}",
            "--fail-over=p99=1s: an experiment is judged by its gates.yml; leave it out",
        ),
    ],
)
def test_options_of_scenarios_are_checked_by_the_scenarios(what: str, scenario: str, said: str) -> None:
    lab = read(GOOD.replace("{scenario: download}", "").replace("- scenario: download", f"- {scenario}"))
    with pytest.raises(SettingsError) as error:
        read_traits(lab, "lab.yml")
    assert said in str(error.value)


def command(text: str, kind: ScenarioTraits, ours: bool = True) -> str:
    lab = read(text)
    run = PlannedRun(1, 2, "a", lab.scenarios[0].called)
    (member,) = lab.scenarios[0].members
    words = member_command(lab, run, member, kind, Target("http://127.0.0.1:1", "10.0.0.1:80"), "/out", ours)
    return " ".join(Path(word).name if i == 0 else word for i, word in enumerate(words))


def test_a_replay_lasts_as_long_as_its_phases() -> None:
    text = GOOD.replace(
        "scenario: download", "scenario: replay\n    options: {log: [a.log, b.log], speed: 2}"
    )
    assert command(text, ScenarioTraits(False, True)) == (
        "replay run a.log b.log --speed 2 --loops 0 --duration 125s --warmup 5s --seed 1 --quiet "
        "--target http://127.0.0.1:1 --connect-to 10.0.0.1:80 --backend a --repeat 2 --out /out"
    )


def test_a_scenario_is_told_what_lab_yml_says_and_may_change_a_clone_of_ours_only() -> None:
    text = GOOD.replace("scenario: download", "scenario: save-article\n    options: {saves: 3}")
    told = (
        "plimsoll scenario save-article --target http://127.0.0.1:1 --connect-to 10.0.0.1:80 --backend a "
        "--repeat 2 --out /out --saves 3 --duration-s 125 --seed 1"
    )
    assert command(text, ScenarioTraits(True, True)) == f"{told} --i-may-change-this-site --no-progress"
    assert command(text, ScenarioTraits(True, True), ours=False) == f"{told} --no-progress"


def test_what_ends_by_itself_is_not_told_when() -> None:
    text = GOOD.replace("scenario: download", "scenario: upgrade-wordpress") + "phases: {during_s: null}\n"
    assert "--duration" not in command(text, ScenarioTraits(True, False))


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("a site that is there already", GOOD + "site: {data: /srv/site}\n"),
        ("an open end", GOOD + "phases: {during_s: null}\n"),
        *((path.name, path.read_text(encoding="utf-8")) for path in EXAMPLES),
    ],
    ids=lambda value: value if "\n" not in value else "",
)
def test_what_is_written_for_a_later_resume_is_read_again(what: str, text: str) -> None:
    lab = read(text)
    assert Lab.model_validate_json(lab.model_dump_json()) == lab, what


def test_the_schema_knows_every_key_of_the_file() -> None:
    assert set(schema_of("lab.yml")["properties"]) == set(Lab.model_fields)
