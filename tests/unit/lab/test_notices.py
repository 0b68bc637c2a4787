"""Notices of an experiment go to a real command, hold nothing up, and show no secret."""

import json
from pathlib import Path

import pytest

from plimsoll.common.errors import SettingsError
from plimsoll.common.notify import URL_NAME, Message, NotDeliveredError
from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment.labfile import OCCASIONS, Notify
from plimsoll.lab.experiment.machines import BusyError
from plimsoll.lab.experiment.notices import Notices, RunResult, build_message, open_notices

SECRET = "http://127.0.0.1:9/T0P-SECRET"  # noqa: S105 of the tests


def notices(sent: list[Message], occasions: object = OCCASIONS) -> Notices:
    return Notices("one", Path("results/one"), [sent.append], occasions, lambda _: None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("says", "result", "verdict", "row"),
    [
        (
            "all is done",
            RunResult(finished=["a"], exit_reason="finished"),
            "finished",
            "1 of 1",
        ),
        (
            "a backend was set aside",
            RunResult(finished=["a"], not_done=["b"], set_aside={"nvme": "gone"}, exit_reason="unfinished"),
            "unfinished",
            "nvme: gone",
        ),
        ("it failed", RunResult(exit_reason="failed", error="no room"), "failed", "no room"),
    ],
)
def test_the_end_is_reported(says: str, result: RunResult, verdict: str, row: str) -> None:
    sent: list[Message] = []
    notifier = notices(sent)
    notifier.send_end(result)
    notifier.close()
    (message,) = sent
    assert message.verdict == verdict, says
    assert row in message.markdown.replace("\\", "")
    assert "results/one" in message.markdown


def test_an_interruption_and_an_error_are_ends_too_and_a_busy_machine_is_none() -> None:
    for error, verdicts in (
        (KeyboardInterrupt(), ["interrupted"]),
        (LabError("it burns"), ["failed"]),
        (BusyError("another one"), []),
    ):
        sent: list[Message] = []
        notifier = notices(sent)
        with pytest.raises(type(error)), notifier.send_on_error():
            raise error
        assert [message.verdict for message in sent] == verdicts


def test_only_what_is_asked_for_is_reported() -> None:
    sent: list[Message] = []
    notifier = notices(sent, ["set-aside"])
    notifier.send("failure", "run failed", "run 1 of 8 failed")
    notifier.send("set-aside", "set aside", "nvme was set aside")
    notifier.close()
    assert [message.verdict for message in sent] == ["set aside"]


def test_a_notice_that_does_not_arrive_is_reported_and_the_next_one_goes_out() -> None:
    sent, said = list[Message](), list[str]()

    def send(message: Message) -> None:
        if not said:
            raise NotDeliveredError("the web hook answered 500")
        sent.append(message)

    notifier = Notices("one", Path("results/one"), [send], OCCASIONS, said.append)
    notifier.send("failure", "run failed", "run 1")
    notifier.send("failure", "run failed", "run 2")
    notifier.close()
    assert said == ["A notice did not go out: the web hook answered 500"]
    assert [message.subject for message in sent] == ["one: run 2"]


def test_what_a_site_said_is_text_in_a_notice() -> None:
    message = build_message("one", "failed", "<script> [x](http://evil)", ["@all\n# gone"])
    assert "<script>" not in message.markdown
    assert "](http" not in message.markdown
    assert "\n# gone" not in message.markdown


def test_a_command_of_lab_yml_gets_the_notice_and_no_secret(tmp_path: Path) -> None:
    script, out = tmp_path / "tell", tmp_path / "told.json"
    script.write_text(
        "#!/usr/bin/env python3\nimport json, os, sys\n"
        "said = [os.environ['PLIMSOLL_VERDICT'], sys.stdin.read(), dict(os.environ)]\n"
        f"json.dump(said, open({str(out)!r}, 'w'))\n"
    )
    script.chmod(0o755)
    notifier = open_notices(Notify(command=str(script)), "one", tmp_path, {"notify_command": None}, print, {})
    notifier.send_end(RunResult(finished=["a"], exit_reason="finished"))
    notifier.close()
    verdict, text, environment = json.loads(out.read_text())
    assert verdict == "finished"
    assert text.startswith("# Plimsoll: one\\: the experiment is finished")
    assert URL_NAME not in environment


def test_the_url_in_the_environment_counts_where_lab_yml_asks_for_notices(tmp_path: Path) -> None:
    environment = {URL_NAME: SECRET}
    options = {"notify_command": None, "webhook_file": None}
    for notify, many in ((None, 0), (Notify(), 1)):
        notifier = open_notices(notify, "one", tmp_path, options, print, environment)
        assert len(notifier._channels) == many


@pytest.mark.parametrize(
    ("why", "notify", "option", "environment", "is_said"),
    [
        ("nobody is named", Notify(occasions=["end"]), None, {}, True),
        ("by an option of plimsoll run", Notify(occasions=["end"]), "true", {}, False),
        ("by the environment", Notify(occasions=["end"]), None, {URL_NAME: SECRET}, False),
        ("by lab.yml", Notify(command="true"), None, {}, False),
        ("lab.yml asks for no notices", None, None, {}, False),
    ],
)
def test_notices_that_nobody_gets_are_reported(
    tmp_path: Path,
    why: str,
    notify: Notify | None,
    option: str | None,
    environment: dict[str, str],
    is_said: bool,
) -> None:
    said: list[str] = []
    open_notices(notify, "one", tmp_path, {"notify_command": option}, said.append, environment)
    assert [line.partition(": give")[0] for line in said] == ["notify: nobody is notified"] * is_said, why


def test_a_file_with_a_url_that_others_may_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(SECRET)
    file.chmod(0o644)
    with pytest.raises(SettingsError, match="chmod 600") as refused:
        open_notices(Notify(webhook_file=file), "one", tmp_path, {}, print, {})
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("command", ["", "mail -s 'open"])
def test_a_command_that_is_none_is_refused(command: str) -> None:
    with pytest.raises(ValueError, match="command"):
        Notify(command=command)
