"""One more driver, disk, saturator or observer is one file and one line: all commands know it then.

A tuning key is a line alone. That the report draws the observer is one line in another registry: analysis
knows nothing of the lab.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from plimsoll.lab.clones import DRIVERS
from plimsoll.lab.disks import DISKS
from plimsoll.lab.observers import OBSERVERS
from plimsoll.lab.saturators import SATURATORS
from tests.support.programs import ROOT
from tests.support.rundir import traffic, write_run

_TOYS = Path(__file__).parent / "toys"
# The folder of the package that each toy's file goes to, and its line in the registry there, after the last.
_FILES = [
    ("boat.py", "lab/clones", '        "boat:BOAT",\n', '        "proxmox:PROXMOX",\n'),
    ("tub.py", "lab/disks", '        "tub:TUB",\n', '        "emulated:EMULATED",\n'),
    ("tide.py", "lab/saturators", '        "tide:TIDE",\n', '        "backup:BACKUP",\n'),
    ("wind.py", "lab/observers", '        "wind:WIND",\n', '        "php:OBSERVER",\n'),
]
_KNOTS = r"""HostRow("wind", "wind", "kn", r"wind\.knots_count", 5, means="A storm.", look_at="the sky")"""
_DRAWN = f"""    HostSubject("wind", "The wind", "How it blows.", ({_KNOTS},)),\n"""
_SWELL = '    swell: int | None = Field(None, description="How high the waves are.")\n'

LAB = """
name: toys
backends:
  - name: harbour
    disk: {kind: tub, litres: 200}
    clone: {driver: boat, port: 8123}
scenarios:
  - scenario: download
saturator: {kind: tide}
phases: {before_s: 1, during_s: 1, after_s: 1}
observe: {observe: [wind, cpu], wind: {vane: roof}}
repeats: 1
"""
FOLDER = "/tub/harbour/plimsoll-toys--harbour"

COMMANDS = """
import json, sys
from click.testing import CliRunner
from plimsoll.cli import main

def done(words):
    result = CliRunner().invoke(main, words)
    return result.exit_code, result.stdout, result.stderr

print(json.dumps({name: done(words) for name, words in json.load(sys.stdin).items()}))
"""
SAMPLE = """
import asyncio, json
from plimsoll.lab.observers import WithOwnKeys
from plimsoll.lab.observers.sampler import prepare_sampler
from tests.support.scripted import FakeMachine

async def sample():
    settings = WithOwnKeys(observe=("wind",))
    sampler = await prepare_sampler(FakeMachine({"/proc/wind/roof": "12"}), settings, print)
    return sampler.columns, (await sampler.once())[1]

print(json.dumps(asyncio.run(sample())))
"""
PAGES = """
import json
from tools import tables

print(json.dumps({path.name: text for path, text in tables.pages().items()}))
"""
ROWS = [
    ("lab.md", "| `boat` | The site on a boat | |"),
    ("lab.md", "| `port` | `8080` | Where it listens |"),
    ("disks.md", "| `tub.litres` | required | How much it holds |"),
    ("saturators.md", "## tide\n\nThe tide, twice a day.\n"),
    ("saturators.md", "| `folder` | `@clone` | Where it rises |"),
    ("observers.md", "| `wind.vane` | `roof` | Which vane is read |"),
    ("observers.md", "| `wind.knots_count` | | knots |"),
    ("report.md", "| The wind | wind (kn) | How it blows |"),
    ("stalls.md", "| wind | A storm. | the sky |"),
    ("tuning.md", "| `vm.swell` | How high the waves are |"),
]
WRONG = [
    ("a key that the toy has not", "port: 8123", "prot: 8123", "clone.prot: is not a known key"),
    ("a required key is missing", ", litres: 200", "", "disk.litres: is missing"),
    ("a kind that does not exist", "kind: tide", "kind: flood", "tide"),
    ("an observer that does not exist", "[wind, cpu]", "[rain]", "or wind"),
    (
        "a swell that is no number",
        "8123}",
        "8123}\n    tuning: {vm: {swell: high}}",
        "tuning.vm.swell: must be",
    ),
]
Done = tuple[int, str, str]  # exit code, stdout, stderr


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _copy_with_toys(tmp_path_factory.mktemp("house"))


def _copy_with_toys(folder: Path) -> Path:
    """Return `folder` with a copy of this checkout in it that has the toys, and nothing else that is new."""
    passing = "*.pyc.*"  # what another Python writes, and renames when it is whole
    for name in ("plimsoll", "tools"):
        left_out = shutil.ignore_patterns("node_modules", passing)
        shutil.copytree(ROOT / name, folder / name, ignore=left_out)
    for name in ("tests", "docs", "replay", "bin"):
        (folder / name).symlink_to(ROOT / name)
    for name, place, line, last in _FILES:
        package = folder / "plimsoll" / place
        shutil.copy2(_TOYS / name, package / name)
        _add_line(package / "__init__.py", line, last)
    rows = folder / "plimsoll" / "analysis" / "evidence" / "host_rows.py"
    _add_line(rows, _DRAWN, "SUBJECTS = (\n")
    keys = folder / "plimsoll" / "lab" / "tuning" / "keys.py"
    _add_line(keys, _SWELL, '    """Settings of the kernel\'s memory, in /proc/sys/vm."""\n\n')
    return folder


def _add_line(registry: Path, line: str, after: str) -> None:
    text = registry.read_text(encoding="utf-8")
    assert text.count(after) == 1, registry
    registry.write_text(text.replace(after, after + line), encoding="utf-8")


def _run(house: Path, code: str, said: str = "") -> str:
    """Run `code` in a process that knows the toys; return what it prints."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=house, capture_output=True, text=True, input=said, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def outputs(house: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    """What commands say to a lab of toys: all of one process, whose import of the lab takes a second."""
    folder = tmp_path_factory.mktemp("toys")

    def lab(name: str, text: str) -> str:
        path = folder / f"{name}.yml"
        path.write_text(text)
        return str(path)

    right = lab("lab", LAB)
    commands = {
        "plan": ["check", "--plan", "--json", right],
        "check": ["check", right],
        "schema": ["schema", "lab.yml"],
    }
    for what, key, wrong, _ in WRONG:
        commands[what] = ["check", "--no-probe", lab(what, LAB.replace(key, wrong))]
    return {
        name: tuple(done) for name, done in json.loads(_run(house, COMMANDS, json.dumps(commands))).items()
    }


def test_lab_plan_shows_what_toys_do_and_where_each_works(outputs: dict[str, Done]) -> None:
    code, stdout, stderr = outputs["plan"]
    assert code == 0, stderr
    chapters: list[dict[str, Any]] = json.loads(stdout)["chapters"]
    commands = [step["command"] for chapter in chapters for step in chapter["steps"]]
    loads = [command for command in commands if "scenario download" in command]
    assert len(loads) == 1
    assert "--target http://127.0.0.1:8123" in loads[0], "load goes to the toy clone"
    assert [command for command in commands if command not in loads] == [
        "fill-tub /tub/harbour 200",
        f"build-boat {FOLDER}",
        f"launch-boat {FOLDER}",
        "GET http://127.0.0.1:8123 until it is answered, 300 s at most",
        f"ebb {FOLDER}",
        f"tide {FOLDER}",
        f"ebb {FOLDER}",
        f"sink-boat {FOLDER}",
        "drain-tub /tub/harbour",
    ]


def test_lab_check_looks_for_the_programs_of_toys(outputs: dict[str, Done]) -> None:
    code, stdout, stderr = outputs["check"]
    assert code == 1, stderr
    for program in ("build-boat", "sink-boat", "fill-tub", "tide"):
        assert f"local has no {program}: install it" in stdout


@pytest.mark.parametrize(("what", "right", "wrong", "said"), WRONG, ids=[row[0] for row in WRONG])
def test_toys_settings_are_checked(
    what: str, right: str, wrong: str, said: str, outputs: dict[str, Done]
) -> None:
    code, stdout, stderr = outputs[what]
    assert code == 2, f"{what}: {stdout}"
    assert said in stderr


def test_a_toy_observer_is_sampled_as_its_own_key_says(house: Path) -> None:
    assert json.loads(_run(house, SAMPLE)) == [["wind.knots_count"], [12.0]]


def test_the_schema_for_editors_has_the_toys(outputs: dict[str, Done]) -> None:
    assert {"BoatSettings", "TubSettings", "TideSettings"} <= json.loads(outputs["schema"][1])["$defs"].keys()


def test_a_toy_observer_is_drawn(house: Path, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", traffic(60, 30))
    rows = "".join(f"{second}000000000,{second}\n" for second in range(60))
    (run / "host.csv").write_text(f"t_ns,wind.knots_count\n{rows}")
    _run(house, f"from plimsoll.cli import main; main(['report', {str(run)!r}], standalone_mode=False)")
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "The wind" in page
    assert 'id="figure-host-wind-0"' in page


def test_make_docs_writes_the_tables_of_toys(house: Path) -> None:
    pages = json.loads(_run(house, PAGES))
    assert [(page, row) for page, row in ROWS if row not in pages[page]] == []


def test_an_entry_is_called_as_lab_yml_calls_it() -> None:
    entries = [("driver", DRIVERS), ("kind", DISKS), ("kind", SATURATORS)]
    for key, registry in entries:
        names = [entry.name for entry in registry]  # type: ignore[attr-defined]
        assert names == [
            get_args(entry.settings.model_fields[key].annotation)[0]
            for entry in registry  # type: ignore[attr-defined]
        ]
    assert len({observer.name for observer in OBSERVERS}) == len(OBSERVERS)


def test_every_observer_has_columns() -> None:
    assert all(observer.columns for observer in OBSERVERS)
