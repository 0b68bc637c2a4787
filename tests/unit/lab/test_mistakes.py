"""Files full of mistakes: all are told in one go, as people speak. errors.txt has those of lab.yml."""

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.analysis.compare.gates import read_gates
from plimsoll.common.errors import SettingsError
from plimsoll.common.validation import parse_model
from plimsoll.lab.experiment.labfile import MANUAL, Lab
from plimsoll.lab.experiment.problems import key_problems, read_checked
from plimsoll.lab.hosts import read_hosts
from plimsoll.scenarios.running.clonelist import read_config
from tests.support.golden import GOLDEN
from tests.support.programs import ROOT

# Words of pydantic, Python and YAML's parser that mean nothing to whoever wrote the file.
SPEECH = re.compile(
    r"(?i)<class|\bInput\b|discriminator|pydantic|\btag\b|dictionary|tuple|NoneType|validation"
)


def told(path: Path, read: object = read_checked) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        read(path)  # type: ignore[operator]
    return [line.removeprefix(f"{path}:") for line in str(caught.value).splitlines()]


def test_each_has_its_line_and_a_page_that_there_is_and_no_jargon() -> None:
    text = (GOLDEN / "mistakes.yml").read_text(encoding="utf-8").splitlines()
    found = told(GOLDEN / "mistakes.yml")
    assert len(found) >= 30
    for line in found:
        number, what = line.split(": ", 1)
        key = what.split(": ")[0].split(".")[-1]
        page = re.search(r"docs/\w+\.md", what)
        assert page and (ROOT / page[0]).is_file(), line
        assert not SPEECH.search(what), line
        assert key.isdecimal() or key in text[int(number) - 1], line


def test_what_was_mended_is_not_told_again(tmp_path: Path) -> None:
    """The first problem of each key does not hide others that only a later try would show."""
    path = tmp_path / "lab.yml"
    path.write_text(
        "name: Lab\nphases: {before_s: x, during_s: null, after_s: 3}\nscenarios: [{scenario: replai}]\n"
    )
    assert [line.split(":")[1].strip() for line in told(path)] == [
        "backends",
        "name",
        "phases.before_s",
        "phases",
        "scenarios.0.scenario",
    ]


FACTORS = [
    ("recordsize on ext4", "recordsize", "its datasets are not known"),
    ("a factor that there is not", "record-sice", "did you mean recordsize"),
]


@pytest.mark.parametrize(("what", "factor", "says"), FACTORS, ids=[row[0] for row in FACTORS])
def test_a_factor_that_does_not_fit_is_told_beside_options(
    tmp_path: Path, what: str, factor: str, says: str
) -> None:
    path = tmp_path / "lab.yml"
    path.write_text(
        "name: grid\n"
        "backends:\n"
        "- {name: a, disk: {kind: emulated, filesystem: ext4, size_bytes: 4G}, clone: {driver: compose}}\n"
        "scenarios: [{scenario: save-article, options: {duration_s: 9}}]\n"
        f"factors: [{{name: {factor}, values: [16K, 128K]}}]\n"
    )
    found = told(path)
    assert len(found) == 2, what
    assert "scenarios.0.options.duration_s: the lab sets this by the phases" in "\n".join(found), what
    assert says in "\n".join(found), what


def test_what_follows_from_a_disk_that_is_wrong_is_not_told(tmp_path: Path) -> None:
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
    assert [line.split(": ")[1] for line in told(path)] == ["backends.0.disk"]


OTHERS = [
    ("gates.yml", read_gates, "gates:\n- {scenario: replay, fase: during}\nconfidence: high\n"),
    ("hosts.yml", read_hosts, "hosts:\n- {name: a, adress: b, port: ssh}\n- {name: a}\n"),
    ("plimsoll.yml", read_config, "clone: [x]\nclones: http://a\n"),
]
SAID = {
    "gates.yml": [
        "2: gates.0.fase: is not a known key: did you mean phase? (see docs/compare.md)",
        "3: confidence: must be a number (see docs/compare.md)",
    ],
    "hosts.yml": [
        "2: hosts.0.adress: is not a known key: did you mean address? (see docs/hosts.md)",
        "2: hosts.0.port: must be a whole number (see docs/hosts.md)",
        "3: hosts.1.name: a is already the name of hosts.0 (see docs/hosts.md)",
    ],
    "plimsoll.yml": [
        "1: clone: is not a known key: did you mean clones? (see docs/scenarios.md)",
        "2: clones: must be a list: [one, another] (see docs/scenarios.md)",
    ],
}


@pytest.mark.parametrize(("name", "read", "text"), OTHERS, ids=[row[0] for row in OTHERS])
def test_the_other_files_speak_so_too(tmp_path: Path, name: str, read: object, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert told(tmp_path / name, read) == SAID[name]


YAML = [
    ("a tab", "name: a\n\tsite: {}\n", "indent with spaces, not with a tab"),
    ("an unquoted @", "name: @disk\n", "put the word that begins with @ in quotes"),
    ("a list", "- a\n", "must hold keys"),
]


@pytest.mark.parametrize(("what", "text", "says"), YAML, ids=[row[0] for row in YAML])
def test_what_is_no_yaml_says_what_to_do(tmp_path: Path, what: str, text: str, says: str) -> None:
    (tmp_path / "lab.yml").write_text(text)
    assert says in "\n".join(told(tmp_path / "lab.yml")), what


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
def test_whatever_is_written_is_told_or_right(value: dict[object, object]) -> None:
    text = yaml.safe_dump(value)
    try:
        parse_model(text, "lab.yml", Lab, MANUAL, key_problems)
    except SettingsError as error:
        assert str(error)
        assert "<class" not in str(error)
