"""lab.yml and its like: all that is wrong is said at once, with line, key and remedy, as people speak.

errors.txt among the golden files has a file full of mistakes.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.analysis.compare.gates import read_gates
from plimsoll.cli import schema_of
from plimsoll.common.errors import SettingsError
from plimsoll.lab.experiment.labfile import Lab
from plimsoll.lab.experiment.problems import MOST_VARIANTS, read_checked
from plimsoll.lab.experiment.scenarios import read_traits
from plimsoll.lab.hosts.hostsfile import read_hosts
from plimsoll.scenarios.running.clonelist import read_config
from tests.support.golden import GOLDEN
from tests.support.labfile import ALONE, ENDLESS, TOGETHER, UPGRADES, parse_lab
from tests.support.programs import ROOT

SWEEP = """
name: sweep
backends:
  - {name: tank, disk: {kind: folder, path: /tank/lab, dataset: tank/lab}, clone: {driver: compose}}
scenarios:
  - {scenario: replay, options: {log: access.log, speed: 2}}
"""

EXAMPLES = [
    path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "examples").glob("*.yml"))
    if "\nbackends:" in path.read_text(encoding="utf-8")
]
OWN = "tuning: {disks: {'@disk': {scheduler: none}}, datasets: {'@disk': {sync: always}}}"
PARTS = "tuning: {datasets: {'@database': {recordsize: 16K}, '@web': {}}}"


def problems_of(text: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        parse_lab(text)
    return str(caught.value).splitlines()


def has_parts(line: str, message: str) -> bool:
    """Whether the parts of `message`, which … separates, are in `line`, in order."""
    return re.search(".*".join(map(re.escape, message.split("…"))), line) is not None


FACTORS: list[tuple[str, dict[str, Any], str]] = [
    (
        "a factor that does not exist",
        {"name": "recordsise", "values": [1, 2]},
        "name: recordsise is not known as a key…did you mean recordsize?",
    ),
    (
        "a key that does not exist",
        {"name": "a", "key": "tuning.vm.swapines", "values": [1, 2]},
        "key…did you mean tuning.vm.swappiness?",
    ),
    ("a level too high", {"name": "swappiness", "values": [1, 900]}, "values.1: 900: must be at most 200"),
    (
        "a level that cannot be",
        {"name": "recordsize", "values": ["16K", "17K"]},
        "values.1: 17K: must be a power of two",
    ),
    (
        "one level in two spellings",
        {"name": "atime", "values": [True, "on"]},
        "values.1: on is already factors.0.values.0",
    ),
    ("one level", {"name": "atime", "values": ["on"]}, "values: "),
    (
        "backends as a factor",
        {"name": "backend", "key": "disk.path", "values": ["/a", "/b"]},
        "name: backend is already a factor",
    ),
    (
        "an option of a scenario that does not exist",
        {"name": "a", "key": "scenarios.replai.options.speed", "values": [1, 2]},
        "…not one of scenarios: replay",
    ),
    ("a key that is not varied", {"name": "a", "key": "out", "values": ["a", "b"]}, "…out cannot be varied"),
    (
        "the site that is copied",
        {"name": "a", "key": "site.size", "values": ["small", "large"]},
        "…site is not varied",
    ),
    (
        "a backend that does not exist",
        {"name": "atime", "values": ["on", "off"], "backends": ["tonk"]},
        "…tonk is not one of backends",
    ),
]
SIZES, ATIMES = {"name": "recordsize", "values": ["128K", "16K"]}, {"name": "atime", "values": ["on", "off"]}
EIGHT = [
    {"name": name, "values": list(range(1, 9))}
    for name in ("swappiness", "vfs_cache_pressure", "dirty_expire_centisecs")
]


def sweep(*factors: dict[str, Any], **more: Any) -> str:
    return SWEEP + yaml.safe_dump({"factors": [*factors], **more})


WRONG: list[tuple[str, str, list[str]]] = [
    (
        "a name with a space",
        ALONE.replace("name: lab", "name: my lab"),
        ["lab.yml:2: name: must be lower-case letters"],
    ),
    (
        "no backend",
        "name: lab\nbackends: []\nscenarios: [{scenario: download}]",
        ["lab.yml:2: backends: must not be empty"],
    ),
    (
        "an unknown key",
        ALONE + "repeat: 3\n",
        ["lab.yml:8: repeat: is not a known key: did you mean repeats? (see docs/lab.md)"],
    ),
    (
        "a backend that stands twice",
        ALONE.replace(
            "scenarios:", '  - name: a\n    clone: {driver: static, target: "http://h"}\nscenarios:'
        ),
        ["lab.yml:6: backends.1.name: a is already the name of backends.0"],
    ),
    (
        "a host that does not exist",
        ALONE.replace("    clone", "    host: pve1\n    clone"),
        ["lab.yml:5: backends.0.host: pve1 is not one of hosts: local"],
    ),
    (
        "compose without a disk",
        ALONE.replace('static, target: "http://127.0.0.1:8080"', "compose"),
        ["backends.0.disk: is missing: compose puts the clone on a disk"],
    ),
    (
        "a disk to be made under a host that exists",
        ALONE.replace("    clone", "    disk: {kind: emulated, filesystem: ext4, size_bytes: 1G}\n    clone"),
        ["backends.0.disk: must be a folder: static is on a disk that exists"],
    ),
    (
        "the own disk, of which nothing is known",
        ALONE.replace("    clone", f"    {OWN}\n    clone"),
        ["tuning.datasets.@disk: its disk has no dataset", "tuning.disks.@disk: no device of its disk"],
    ),
    (
        "parts of a clone on a disk without datasets",
        ALONE.replace('static, target: "http://127.0.0.1:8080"', "compose").replace(
            "    clone", f"    disk: {{kind: folder, path: /srv}}\n    {PARTS}\n    clone"
        ),
        [
            "lab.yml:6: backends.0.tuning.datasets.@database: its disk has no dataset: put the clone",
            "lab.yml:6: backends.0.tuning.datasets.@web: its disk has no dataset: put the clone on ZFS",
        ],
    ),
    (
        "parts of a clone that the lab does not make",
        ALONE.replace("    clone", f"    {PARTS}\n    clone"),
        [
            "datasets.@database: only a clone of the driver compose has it on a dataset of its own",
            "datasets.@web: only a clone of the driver compose has it on a dataset of its own",
        ],
    ),
    (
        "a part that does not exist",
        ALONE.replace("    clone", f"    {OWN.replace('@disk', '@www')}\n    clone"),
        [
            "datasets.@www: must be @disk, @database, @web or a dataset's name, such as tank/site",
            "disks.@www: must be a device's name",
        ],
    ),
    (
        "two scenarios of a name",
        ALONE + "  - scenario: download\n",
        ["scenarios.1.name: download is already the name of scenarios.0"],
    ),
    (
        "an upgrade alone, for so long",
        ALONE.replace("scenario: download", "scenario: upgrade-wordpress"),
        ["lab.yml:7: scenarios.0.phases: upgrade-wordpress ends by itself, so its phases cannot"],
    ),
    (
        "a phase after one without an end",
        ALONE + "phases: {during_s: null, after_s: 9}\n",
        ["phases: after_s: nothing can follow a during_s of null"],
    ),
    (
        "a reference in a command",
        ALONE.replace(':8080"', ':8080", reset: [["${loop}"]]'),
        ["must not contain ${"],
    ),
    (
        "several at once, in the order of the file",
        ALONE.replace("name: lab", "name: Lab") + "order: baab\nrepeats: 0\nwork: relative\n",
        ["lab.yml:2: name:", "lab.yml:8: order:", "lab.yml:9: repeats:", "lab.yml:10: work:"],
    ),
    (
        "looks in no blocks",
        ALONE + "order: abba\nlooks: end\n",
        ["lab.yml:9: looks: is for order: blocks, and order is abba: write that, or leave looks out"],
    ),
    (
        "a half block at which nobody can look",
        ALONE + "looks: blocks\nrepeats: 5\n",
        ["lab.yml:9: repeats: must be even with looks: blocks, as a block is two repeats: give 6"],
    ),
    ("looks that are not known", ALONE + "looks: daily\n", ["lab.yml:8: looks:"]),
    (
        "neither a scenario nor several",
        TOGETHER.replace("scenarios:", "scenarios:\n  - name: idle"),
        ["scenarios.0.scenario: is missing: name a scenario, or several under together"],
    ),
    (
        "a scenario beside its members",
        TOGETHER.replace("rush-hour", "rush-hour\n    scenario: replay"),
        ["lab.yml:8: scenarios.0.scenario: must be left out beside together"],
    ),
    (
        "options of nobody",
        TOGETHER.replace("rush-hour", "rush-hour\n    options: {log: b.log}"),
        ["lab.yml:8: scenarios.0.options: must be left out beside together: give each member its own"],
    ),
    (
        "no name",
        TOGETHER.replace("  - name: rush-hour\n    together", "  - together"),
        ["scenarios.0.name: is missing: what runs together needs a name, such as rush-hour"],
    ),
    (
        "one member",
        TOGETHER.replace("      - scenario: save-article\n", ""),
        ["lab.yml:8: scenarios.0.together: has one member"],
    ),
    (
        "two members of a name",
        TOGETHER.replace("- scenario: save-article", "- {scenario: replay, options: {log: b.log}}"),
        ["scenarios.0.together.1.name: replay is already the name of together.0: give it another name"],
    ),
    (
        "two upgrades of the same WordPress",
        UPGRADES.replace(
            "{scenario: replay, options: {log: a.log}}", "{scenario: upgrade-wordpress, name: b}"
        ),
        ["together.1.scenario: WordPress is already upgraded by another member"],
    ),
    (
        "an author whom an upgrade shuts out",
        UPGRADES.replace("phases", "      - scenario: upload-images\nphases"),
        ["together.2.scenario: upload-images cannot run beside upgrade-wordpress"],
    ),
    (
        "a crowd that is late",
        TOGETHER.replace("replay, options", "replay, begin_s: 3, options"),
        ["lab.yml:10: scenarios.0.together.1.begin_s: replay is the crowd, which is there before"],
    ),
    (
        "a browser that is to wait",
        TOGETHER.replace("save-article", "browser\n        begin_s: 3"),
        ["lab.yml:10: scenarios.0.together.0.begin_s: browser begins with the run"],
    ),
    (
        "a member that begins when all is over",
        TOGETHER.replace("save-article", "save-article\n        begin_s: 45"),
        ["lab.yml:10: scenarios.0.together.0.begin_s: is after the end of the run, which lasts 45 s"],
    ),
    (
        "a crowd only, and nobody who ends it",
        ENDLESS.replace("- scenario: save-article", "- scenario: visitors"),
        ["scenarios.0.together: during_s: null needs a member that ends by itself"],
    ),
    *((what, sweep(factor), [f"factors.0.{message}"]) for what, factor, message in FACTORS),
    (
        "a clone made anew of a host that exists",
        ALONE + "factors: [{name: a, key: tuning.datasets.tank/x.recordsize, values: [16K, 8K]}]",
        ["static does not create clones"],
    ),
    ("too many combinations", sweep(*EIGHT), [f"512 combinations … at most {MOST_VARIANTS}"]),
    (
        "levels that do not fit together",
        sweep(
            {"name": "dirty_ratio", "values": [5, 10]},
            {"name": "dirty_bytes", "values": ["1M", "2M"]},
        ),
        ["do not fit together: …dirty_ratio and dirty_bytes"],
    ),
    (
        "combinations of other factors and levels",
        sweep(
            SIZES,
            ATIMES,
            combinations=[{"recordsice": "128K", "atime": "on"}, {"recordsize": "8K", "atime": "on"}],
        ),
        [
            "combinations.0: has no value for recordsize",
            "combinations.0.recordsice: is not one of factors: did you mean recordsize?",
            "combinations.1.recordsize: 8K is not one of the values of recordsize: 128K, 16K",
        ],
    ),
    ("combinations of nothing", SWEEP + "combinations: [{a: 1}]\n", ["requires factors to combine"]),
    ("cold, where a site exists", ALONE + "cache: cold", ["cold is not possible on a: the lab"]),
    ("warm, where a site exists", ALONE + "cache: warm", ["warm is not possible on a: the lab"]),
    (
        "warm, in a guest",
        SWEEP.replace("driver: compose", "driver: qemu, image: /srv/debian.qcow2") + "cache: warm",
        ["only the guest itself can read the files in its disk (qemu)"],
    ),
    ("a state of caches that does not exist", SWEEP + "cache: hot", ["cache"]),
]


@pytest.mark.parametrize(("text", "messages"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_is_wrong_is_reported_with_its_line_and_key(text: str, messages: list[str]) -> None:
    lines = problems_of(text)
    assert len(lines) == len(messages), lines
    for line, message in zip(lines, messages, strict=True):
        assert has_parts(line, message)


def test_all_that_is_wrong_with_factors_is_reported_at_once() -> None:
    several = [factor for _, factor, _ in FACTORS if len(factor["values"]) > 1]  # one alone fits no model
    found = re.findall(r"factors\.(\d+)\.\w+[.\d]*: ", "\n".join(problems_of(sweep(*several))))
    assert {int(number) for number in found} == set(range(len(several)))


OPTIONS = [
    (
        "a scenario that does not exist",
        "{scenario: uplode}",
        "scenarios.0.scenario: uplode does not exist; choose one of replay, download",
    ),
    (
        "an option that does not exist",
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
]


@pytest.mark.parametrize(
    ("scenario", "message"), [row[1:] for row in OPTIONS], ids=[row[0] for row in OPTIONS]
)
def test_options_of_scenarios_are_checked_by_the_scenarios(scenario: str, message: str) -> None:
    lab = parse_lab(ALONE.replace("- scenario: download", f"- {scenario}"))
    with pytest.raises(SettingsError) as caught:
        read_traits(lab, "lab.yml")
    assert message in str(caught.value)


def test_what_is_written_for_a_later_resume_is_read_again() -> None:
    for text in (ALONE + "site: {data: /srv/site}\n", ALONE + "phases: {during_s: null}\n", *EXAMPLES):
        lab = parse_lab(text)
        assert Lab.model_validate_json(lab.model_dump_json()) == lab, text


def test_the_schema_knows_every_key_of_the_file() -> None:
    assert set(schema_of("lab.yml")["properties"]) == set(Lab.model_fields)


# Words of pydantic, Python and YAML's parser that mean nothing to whoever wrote the file.
SPEECH = re.compile(
    r"(?i)<class|\bInput\b|discriminator|pydantic|\btag\b|dictionary|tuple|NoneType|validation"
)


def problems_in(path: Path, read: Callable[[Path], object] = read_checked) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        read(path)
    return [line.removeprefix(f"{path}:") for line in str(caught.value).splitlines()]


def test_each_has_its_line_and_a_page_that_there_is_and_no_jargon() -> None:
    text = (GOLDEN / "mistakes.yml").read_text(encoding="utf-8").splitlines()
    found = problems_in(GOLDEN / "mistakes.yml")
    assert len(found) >= 30
    for line in found:
        number, what = line.split(": ", 1)
        key = what.split(": ")[0].split(".")[-1]
        page = re.search(r"docs/\w+\.md", what)
        assert page and (ROOT / page[0]).is_file(), line
        assert not SPEECH.search(what), line
        assert key.isdecimal() or key in text[int(number) - 1], line


def test_what_was_mended_is_not_reported_again(tmp_path: Path) -> None:
    """The first problem of each key does not hide others that only a later try would show."""
    path = tmp_path / "lab.yml"
    path.write_text(
        "name: Lab\nphases: {before_s: x, during_s: null, after_s: 3}\nscenarios: [{scenario: replai}]\n"
    )
    assert [line.split(":")[1].strip() for line in problems_in(path)] == [
        "backends",
        "name",
        "phases.before_s",
        "phases",
        "scenarios.0.scenario",
    ]


BESIDE = [
    ("recordsize on ext4", "recordsize", "its datasets are not known"),
    ("a factor that does not exist", "record-sice", "did you mean recordsize"),
]


@pytest.mark.parametrize(("factor", "message"), [row[1:] for row in BESIDE], ids=[row[0] for row in BESIDE])
def test_a_factor_that_does_not_fit_is_reported_beside_options(
    tmp_path: Path, factor: str, message: str
) -> None:
    path = tmp_path / "lab.yml"
    path.write_text(
        "name: grid\n"
        "backends:\n"
        "- {name: a, disk: {kind: emulated, filesystem: ext4, size_bytes: 4G}, clone: {driver: compose}}\n"
        "scenarios: [{scenario: save-article, options: {duration_s: 9}}]\n"
        f"factors: [{{name: {factor}, values: [16K, 128K]}}]\n"
    )
    found = problems_in(path)
    assert len(found) == 2
    assert "scenarios.0.options.duration_s: the lab sets this by the phases" in "\n".join(found)
    assert message in "\n".join(found)


def test_what_follows_from_a_disk_that_is_wrong_is_not_reported(tmp_path: Path) -> None:
    """Without its disk the backend has no dataset for the factor: that is no mistake of its own."""
    path = tmp_path / "lab.yml"
    path.write_text(
        "name: grid\n"
        "backends:\n"
        "- name: a\n"
        "  disk: {kind: emulated, filesystem: zfs, size_bytes: 4G, like: rotating, bytes_per_s: 9M}\n"
        "  clone: {driver: compose}\n"
        "scenarios: [{scenario: download}]\n"
        "factors: [{name: recordsize, values: [16K, 128K]}]\n"
    )
    assert [line.split(": ")[1] for line in problems_in(path)] == ["backends.0.disk"]


OTHERS: list[tuple[str, Callable[[Path], object], str, list[str]]] = [
    (
        "gates.yml",
        read_gates,
        "gates:\n- {scenario: replay, fase: during}\nconfidence: high\n",
        [
            "2: gates.0.fase: is not a known key: did you mean phase? (see docs/compare.md)",
            "3: confidence: must be a number (see docs/compare.md)",
        ],
    ),
    (
        "hosts.yml",
        read_hosts,
        "hosts:\n- {name: a, adress: b, port: ssh}\n- {name: a}\n",
        [
            "2: hosts.0.adress: is not a known key: did you mean address? (see docs/hosts.md)",
            "2: hosts.0.port: must be a whole number (see docs/hosts.md)",
            "3: hosts.1.name: a is already the name of hosts.0 (see docs/hosts.md)",
        ],
    ),
    (
        "plimsoll.yml",
        read_config,
        "clone: [x]\nclones: http://a\n",
        [
            "1: clone: is not a known key: did you mean clones? (see docs/scenarios.md)",
            "2: clones: must be a list: [one, another] (see docs/scenarios.md)",
        ],
    ),
]


@pytest.mark.parametrize(("name", "read", "text", "messages"), OTHERS, ids=[row[0] for row in OTHERS])
def test_the_other_files_speak_so_too(
    tmp_path: Path, name: str, read: Callable[[Path], object], text: str, messages: list[str]
) -> None:
    (tmp_path / name).write_text(text)
    assert problems_in(tmp_path / name, read) == messages


YAML = [
    ("a tab", "name: a\n\tsite: {}\n", "indent with spaces, not with a tab"),
    ("an unquoted @", "name: @disk\n", "put the word that begins with @ in quotes"),
    ("a list", "- a\n", "must hold keys"),
]


@pytest.mark.parametrize(("text", "message"), [row[1:] for row in YAML], ids=[row[0] for row in YAML])
def test_what_is_no_yaml_says_what_to_do(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "lab.yml").write_text(text)
    assert message in "\n".join(problems_in(tmp_path / "lab.yml"))


KEYS = (
    st.sampled_from([*Lab.model_fields, "kind", "driver", "options", "tuning", "disks", "x"]) | st.integers()
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats()
    | st.sampled_from(["a", "static", "replay", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=6))
def test_whatever_is_written_is_reported_or_right(value: dict[object, object]) -> None:
    text = yaml.safe_dump(value)
    try:
        parse_lab(text)
    except SettingsError as error:
        assert str(error)
        assert "<class" not in str(error)
