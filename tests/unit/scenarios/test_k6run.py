"""How k6 is started, and what its end means. No k6 needed."""

import json
from pathlib import Path

import pytest

from plimsoll.analysis.evidence.summary import summarise
from plimsoll.analysis.exchange.importing import ImportWriter
from plimsoll.analysis.exchange.k6 import K6Assembler
from plimsoll.analysis.exchange.k6_samples import K6Reader
from plimsoll.common.errors import SettingsError
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.records import Request
from plimsoll.rundir.write import RunWriter
from plimsoll.scenarios.k6.run import (
    Job,
    Samples,
    arguments,
    environment,
    k6_hosts,
    k6_status,
    last_error,
    run_status,
)
from plimsoll.scenarios.running.settings import ScenarioSettings


class ToyScript(ScenarioSettings):
    """Settings of a script that logs in."""

    password: str


JOB = Job(
    k6=Path("/opt/k6"),
    script=Path("/plimsoll/scenarios/visitors.js"),
    settings=ToyScript(target="http://127.0.0.1:8080", password="hunter2"),  # noqa: S106
    k6_variables={"K6_BROWSER_HEADLESS": "true"},
    timeout_s=60,
    remedy="lower --rate",
    ramping=False,
    iterations=lambda elapsed_s, done: 10,
)


def test_settings_and_secrets_go_by_the_environment() -> None:
    line = arguments(JOB, Path("/scratch/samples.json"), Path("/results/run"))
    assert line[:2] == ["/opt/k6", "run"]
    assert line[-1] == "/plimsoll/scenarios/visitors.js"
    assert "--out=json=/scratch/samples.json" in line
    assert "--address=" in line, "two k6 at a time need no port of their own"
    assert not any("hunter2" in argument or "8080" in argument for argument in line)


def test_the_users_own_k6_variables_change_no_run() -> None:
    base = {"PATH": "/bin", "K6_OUT": "cloud", "K6_VUS": "9", "PLIMSOLL_RATE": "99"}
    variables = environment(base, JOB)
    settings = json.loads(variables.pop("PLIMSOLL_SETTINGS"))
    assert (settings["target"], settings["password"]) == ("http://127.0.0.1:8080", "hunter2")
    assert variables == {"PATH": "/bin", "K6_NO_USAGE_REPORT": "true", "K6_BROWSER_HEADLESS": "true"}


ENDINGS = [
    ("all is well", 0, False, "", ("complete", None)),
    ("p99.9 was over its limit", 99, False, "", ("complete", "a threshold was crossed")),
    ("Ctrl-C", 105, True, "test run was aborted", ("interrupted", "interrupted from the keyboard")),
    ("Ctrl-C, twice", -9, True, "", ("interrupted", "interrupted from the keyboard")),
    ("killed by somebody else", -9, False, "", ("interrupted", "k6 was killed by signal 9")),
    (
        "the script gave up",
        108,
        False,
        "test aborted: front page: status 503",
        ("failed", "front page: status 503"),
    ),
    ("no word of why", 107, False, "", ("failed", "k6 ended with exit code 107")),
]


@pytest.mark.parametrize(("why", "code", "interrupted", "log", "means"), ENDINGS)
def test_exit_codes_have_a_meaning(
    why: str, code: int, interrupted: bool, log: str, means: tuple[str, str | None]
) -> None:
    assert k6_status(code, interrupted, log) == means, why


LOGS = [
    ("nothing", "", None),
    (
        "an abort",
        "test aborted: log in: refused at step (file:///x/browser.js:107:51(101))\n",
        "log in: refused",
    ),
    ("an exception", "GoError: no such file\n\tat open (native)\n", "no such file"),
    ("in a promise", "Uncaught (in promise) Error: gone\n", "Error: gone"),
]


@pytest.mark.parametrize(("why", "log", "sentence"), LOGS)
def test_the_log_is_one_sentence(why: str, log: str, sentence: str | None) -> None:
    assert last_error(log) == sentence, why


def samples(run: RunWriter, **changed: int) -> Samples:
    """What an untroubled run took: ten iterations of one request each, but for what is `changed`."""
    assembler, deposit = K6Assembler(), ImportWriter(run)
    assembler.requests = assembler.iterations = deposit.good_requests = 10
    for name, value in changed.items():
        setattr(deposit if hasattr(deposit, name) else assembler, name, value)
    deposit.first_failure = "log in: refused" if deposit.failed_checks else None
    return Samples(K6Reader(iter([])), assembler, deposit)


JUDGED = [
    ("all is well", {}, True, "complete"),
    ("one of ten days failed", {"failed_checks": 1}, True, "complete"),
    ("every day failed", {"failed_checks": 10}, True, "failed"),
    ("ten checks of many failed", {"failed_checks": 10}, False, "complete"),
    ("every request failed", {"good_requests": 0}, False, "failed"),
    ("no request was sent", {"requests": 0}, False, "failed"),
]


@pytest.mark.parametrize(("why", "changed", "days", "status"), JUDGED)
def test_a_run_in_which_nothing_succeeded_has_failed(
    tmp_path: Path, why: str, changed: dict[str, int], days: bool, status: str
) -> None:
    with RunWriter(tmp_path, RunFacts(scenario="visitors"), summarise) as run:
        run.request(Request(due_ns=0, total_us=1, route="page"))
        seen = samples(run, **changed)
        assert run_status(("complete", None), seen, None, days)[0] == status, why
        assert run_status(("complete", None), seen, "the target died", days)[0] == "failed", why
        for died in (None, "the target died"):
            assert run_status(("interrupted", "x"), seen, died, days) == ("interrupted", "x")
        run.finish("complete")


def test_connect_to_leads_the_targets_name_and_port_elsewhere() -> None:
    assert k6_hosts("https://blog.example", "127.0.0.1:8443") == {"blog.example:443": "127.0.0.1:8443"}
    assert k6_hosts("http://blog.example:81", "[::1]:80") == {"blog.example:81": "[::1]:80"}
    with pytest.raises(SettingsError, match=r"nowhere\.invalid cannot be resolved"):
        k6_hosts("http://blog.example", "nowhere.invalid:80")
