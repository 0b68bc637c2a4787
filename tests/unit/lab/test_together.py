"""`together:` in lab.yml: what may run at the same time on one clone, and with which commands."""

from pathlib import Path

import pytest

from plimsoll.common.errors import SettingsError
from plimsoll.common.validation import parse_model
from plimsoll.lab.clones.clone import Target
from plimsoll.lab.experiment.design import PlannedRun, variants
from plimsoll.lab.experiment.labfile import MANUAL, Lab
from plimsoll.lab.experiment.load import MemberCommand, build_loads
from plimsoll.lab.experiment.problems import key_problems
from plimsoll.lab.experiment.scenarios import ScenarioTraits, read_traits

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
    return parse_model(text, "lab.yml", Lab, MANUAL, key_problems)


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
            "together.1.scenario: WordPress is already upgraded by another member",
        ),
        (
            "an author whom an upgrade shuts out",
            UPGRADES.replace("phases", "      - scenario: upload-images\nphases"),
            "together.2.scenario: upload-images cannot run beside upgrade-wordpress",
        ),
        (
            "a crowd that is late",
            GOOD.replace("replay, options", "replay, begin_s: 3, options"),
            "lab.yml:10: scenarios.0.together.1.begin_s: replay is the crowd, which is there before",
        ),
        (
            "a browser that is to wait",
            GOOD.replace("save-article", "browser\n        begin_s: 3"),
            "lab.yml:10: scenarios.0.together.0.begin_s: browser begins with the run",
        ),
        (
            "a member that begins when all is over",
            GOOD.replace("save-article", "save-article\n        begin_s: 45"),
            "lab.yml:10: scenarios.0.together.0.begin_s: is after the end of the run, which lasts 45 s",
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
        read_traits(read(text.replace("log: a.log", "log: [a.log]")), "lab.yml")


def test_a_run_changes_the_site_if_any_member_does() -> None:
    assert read_traits(read(GOOD), "lab.yml") == {
        "rush-hour/save-article": ScenarioTraits(changes=True, timed=True),
        "rush-hour/replay": ScenarioTraits(changes=False, timed=True),
        "rush-hour": ScenarioTraits(changes=True, timed=True),
    }


def loads(text: str) -> list[MemberCommand]:
    lab = read(text)
    return build_loads(
        lab, PlannedRun(1, 2, "a", "rush-hour"), read_traits(lab, "lab.yml"), Target("http://h"), "/out", True
    )


def commands(text: str) -> list[str]:
    return [" ".join([Path(load.command[0]).name, *load.command[1:]]) for load in loads(text)]


def with_member(said: str, text: str = GOOD) -> str:
    return text.replace("- scenario: save-article", f"- {{scenario: save-article, {said}}}")


@pytest.mark.parametrize(
    ("what", "text", "says"),
    [
        ("what goes on as long as the run does begins with it", GOOD, None),
        (
            "what ends by itself begins with the saturator, after the warm-up and before_s",
            with_member("options: {iterations: 100}"),
            "begins at 15 s, with the saturator",
        ),
        (
            "so does an upgrade",
            UPGRADES,
            "begins at 15 s, with the saturator",
        ),
        (
            "without an end of the phases all but the crowd end by themselves; so none is in the warm-up",
            ENDLESS.replace("during_s: null", "before_s: 0, during_s: null"),
            "begins at 5 s, with the saturator",
        ),
        (
            "begin_s has the last word on what ends by itself",
            with_member("options: {iterations: 100}, begin_s: 0"),
            None,
        ),
        ("and on what does not", with_member("begin_s: 12.5"), "begins at 12.5 s"),
        (
            "a browser, on k6, waits for nobody",
            ENDLESS.replace("save-article", "browser"),
            None,
        ),
    ],
)
def test_members_begin_when_they_should(what: str, text: str, says: str | None) -> None:
    crowd, timed = (load.begins for load in loads(text))
    assert crowd is None
    assert (timed.sentence if timed else None) == says, what


def test_a_member_that_begins_later_is_told_what_to_wait_for_and_the_plan_says_when() -> None:
    _, timed = loads(with_member("begin_s: 12"))
    assert timed.command[:2] == ["env", "PLIMSOLL_BEGIN_FILE=/out/save-article/begin"]
    assert timed.says == "run the scenario, which begins at 12 s"


def test_the_beginning_of_a_member_can_be_a_factor() -> None:
    text = GOOD + (
        "factors:\n  - {name: late, key: scenarios.rush-hour/save-article.begin_s, values: [0, 20]}\n"
    )
    begins = [variant.lab.scenario("rush-hour").members[0].begin_s for variant in variants(read(text))]
    assert begins == [0, 20]


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
