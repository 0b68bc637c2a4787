"""`together:` in lab.yml: what may run at the same time on one clone, and with which commands."""

from pathlib import Path

import pytest

from lab.clones.clone import Target
from lab.experiment.command_line import loads_of
from lab.experiment.order import PlannedRun
from lab.experiment.scenario_kinds import ScenarioTraits, traits_of
from lab.experiment.settings import MANUAL, Lab, problems
from plimsoll.common.errors import SettingsError
from plimsoll.common.yamlfile import parse_model

GOOD = """
name: lab
backends:
  - name: a
    clone: {driver: static, target: "http://127.0.0.1:8080"}
scenarios:
  - name: rush-hour
    together:
      - scenario: save-article
      - {scenario: replay, options: {log: a.log}}
phases: {before_s: 10, during_s: 20, after_s: 10}
"""
UPGRADES = GOOD.replace("save-article", "upgrade-wordpress")
ENDLESS = GOOD.replace("before_s: 10, during_s: 20, after_s: 10", "during_s: null")


def read(text: str) -> Lab:
    return parse_model(text, "lab.yml", Lab, MANUAL, problems)


@pytest.mark.parametrize(
    ("what", "text", "said"),
    [
        (
            "neither a scenario nor several",
            GOOD.replace("scenarios:", "scenarios:\n  - name: idle"),
            "scenarios.0.scenario: is missing: name a scenario, or several under together",
        ),
        (
            "a scenario beside its members",
            GOOD.replace("rush-hour", "rush-hour\n    scenario: replay"),
            "lab.yml:8: scenarios.0.scenario: must be left out beside together",
        ),
        (
            "options of nobody",
            GOOD.replace("rush-hour", "rush-hour\n    options: {log: b.log}"),
            "lab.yml:8: scenarios.0.options: must be left out beside together: give each member its own",
        ),
        (
            "no name",
            GOOD.replace("  - name: rush-hour\n    together", "  - together"),
            "scenarios.0.name: is missing: what runs together needs a name, such as rush-hour",
        ),
        (
            "one member",
            GOOD.replace("      - scenario: save-article\n", ""),
            "lab.yml:8: scenarios.0.together: has one member",
        ),
        (
            "two members of a name",
            GOOD.replace("- scenario: save-article", "- {scenario: replay, options: {log: b.log}}"),
            "scenarios.0.together.1.name: replay is already the name of together.0: give it another name",
        ),
        (
            "two upgrades of the same WordPress",
            UPGRADES.replace(
                "{scenario: replay, options: {log: a.log}}", "{scenario: upgrade-wordpress, name: b}"
            ),
            "together.1.scenario: WordPress is upgraded by another member already",
        ),
        (
            "an author whom an upgrade shuts out",
            UPGRADES.replace("phases", "      - scenario: upload-images\nphases"),
            "together.2.scenario: upload-images cannot run beside upgrade-wordpress",
        ),
        (
            "a crowd only, and nobody who ends it",
            ENDLESS.replace("- scenario: save-article", "- scenario: visitors"),
            "scenarios.0.together: during_s: null needs a member that ends by itself",
        ),
    ],
)
def test_what_cannot_run_together_is_said_with_line_key_and_remedy(what: str, text: str, said: str) -> None:
    with pytest.raises(SettingsError) as error:
        read(text)
    (line,) = str(error.value).splitlines()
    assert said in line


def test_options_of_members_are_checked_by_their_scenarios() -> None:
    text = GOOD.replace("- scenario: save-article", "- {scenario: save-article, options: {savs: 3}}")
    with pytest.raises(SettingsError, match=r"scenarios\.0\.together\.0\.options\.savs: is not a setting"):
        traits_of(read(text.replace("log: a.log", "log: [a.log]")), "lab.yml")


def test_a_run_changes_the_site_if_any_member_does() -> None:
    assert traits_of(read(GOOD), "lab.yml") == {
        "rush-hour/save-article": ScenarioTraits(changes=True, timed=True),
        "rush-hour/replay": ScenarioTraits(changes=False, timed=True),
        "rush-hour": ScenarioTraits(changes=True, timed=True),
    }


def commands(text: str) -> list[str]:
    lab = read(text)
    loads = loads_of(
        lab, PlannedRun(1, 2, "a", "rush-hour"), traits_of(lab, "lab.yml"), Target("http://h"), "/out", True
    )
    return [" ".join([Path(load.command[0]).name, *load.command[1:]]) for load in loads]


def test_the_crowd_is_started_first_and_outlasts_what_is_timed_within_it() -> None:
    assert commands(GOOD) == [
        "replay run a.log --speed 1 --loops 0 --duration 65s --warmup 5s --seed 1 --quiet --target http://h "
        "--backend a --repeat 2 --out /out/replay",
        "plimsoll scenario save-article --target http://h --backend a --repeat 2 --out /out/save-article "
        "--duration-s 45 --seed 1 --i-may-change-this-site --no-progress",
    ]


def test_an_upgrade_has_its_own_end_among_phases_that_have_theirs() -> None:
    crowd, upgrade = commands(UPGRADES)
    assert "--duration 65s" in crowd
    assert "--duration" not in upgrade


def test_without_an_end_of_the_phases_the_crowd_goes_on_until_it_is_stopped() -> None:
    crowd, author = commands(ENDLESS)
    assert "--loops 0 --duration 7200s" in crowd
    assert "--duration" not in author
