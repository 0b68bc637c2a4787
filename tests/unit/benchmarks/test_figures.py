"""Medians of ratios, goals, theory and punctuality; docs/peers.md, which has them."""

import re
from array import array
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks import logs, tool_replay, tool_wrk
from benchmarks.attack import Flood
from benchmarks.case_example import Tried, conclude
from benchmarks.case_log import typical
from benchmarks.document import BEGIN, END, document, table
from benchmarks.machine import stolen_share
from benchmarks.nginx import config, requests_of_status
from benchmarks.punctuality import judge, read_instants
from benchmarks.ratios import median_ratio, nearest_rank, ratios
from benchmarks.result import Goal, Result, at_most, ratio_at_most, ratio_goal
from benchmarks.stalling import seen_responses_ms, true_p99_ms, true_responses_ms


def test_a_ratio_is_taken_within_its_round() -> None:
    # The machine was half as fast in the second round: the ratio does not mind.
    rounds = [
        {"ours": 300.0, "theirs": 100.0},
        {"ours": 150.0, "theirs": 50.0},
        {"ours": 400.0, "theirs": 100.0},
    ]
    assert ratios(rounds, "ours", "theirs") == [3, 3, 4]
    assert median_ratio(rounds, "ours", "theirs") == 3


def test_a_round_in_which_one_failed_has_no_ratio() -> None:
    rounds: list[dict[str, float | None]] = [
        {"ours": 1.0, "theirs": None},
        {"ours": 1.0},
        {"ours": 6.0, "theirs": 2.0},
    ]
    assert ratios(rounds, "ours", "theirs") == [3]
    assert median_ratio(rounds[:2], "ours", "theirs") is None


@pytest.mark.parametrize(
    ("count", "quantile", "want"),
    [
        (1000, 0.999, 999),
        (1000, 0.99, 990),
        (5000, 0.999, 4995),
        (3, 0.5, 2),
        (1, 0.999, 1),
        (1001, 0.999, 1000),
    ],
)
def test_nearest_rank(count: int, quantile: float, want: int) -> None:
    assert nearest_rank(list(range(count, 0, -1)), quantile) == want


def test_goals_say_what_they_are() -> None:
    rounds = [{"ours": 93.0, "wrk": 100.0}]
    goal = ratio_goal("requests/s against wrk", rounds, "ours", "wrk", 1)
    assert goal.verdict() == "not reached: 0.93 × (0.93 to 0.93)"
    assert ratio_goal("x", rounds, "ours", "wrk", 0.9).reached is True
    nearly = ratio_goal("x", [{"ours": 99.9, "wrk": 100.0}], "ours", "wrk", 1)
    assert nearly.verdict() == "not reached: 0.9990 × (1.00 to 1.00)"
    slower = [{"ours": 2.0, "wrk2": 1.0}, {"ours": 1.1, "wrk2": 1.0}, {"ours": 0.5, "wrk2": 1.0}]
    assert ratio_at_most("p99.9", slower, "ours", "wrk2", 1.2).verdict() == "reached: 1.10 × (0.50 to 2.00)"
    assert ratio_at_most("p99.9", slower, "ours", "wrk2", 1).reached is False
    missing = ratio_goal("x", [], "ours", "wrk", 1, ["wrk is not installed: as root: apt-get install wrk"])
    assert missing.verdict() == "not measured: wrk is not installed: as root: apt-get install wrk"
    assert at_most("memory", 99.0, 100, "MiB").reached is True
    assert at_most("memory", 100.0, 100, "MiB") == Goal("memory", "100 MiB", "< 100 MiB", False)


def test_the_true_p99_of_a_stalling_server() -> None:
    # 250 requests wait in each ten seconds, for 500, 498, … ms; the longest 50 of them are the slowest 1 %.
    assert true_p99_ms(per_second=500, seconds=30) == pytest.approx(400)
    responses = true_responses_ms(500, 10)
    assert sum(response > 0 for response in responses) == 250
    assert max(responses) == pytest.approx(500)


def test_what_the_server_saw_of_a_stall() -> None:
    # One request a second, from second 7 on; the third waited 1.5 s, so the fourth, which waited, 0.5 s.
    pairs_s = [(7, 7), (8, 8), (9, 10.5), (10, 10.5), (11, 11), (12, 12)]
    instants_ns = [int(at * 1e9) for pair in pairs_s for at in pair]
    assert seen_responses_ms(instants_ns, per_second=1) == pytest.approx([0, 0, 1500, 500, 0, 0])


def test_perfect_arrivals_have_no_error_wherever_they_begin() -> None:
    found = judge([7_000_000 + i * 1_000_000 for i in range(2000)], per_second=1000)
    assert (found.arrivals, found.p999_us, found.max_us) == (2000, 0, 0)


def test_late_and_early_arrivals_are_errors_alike() -> None:
    arrivals = [i * 1_000_000 for i in range(1000)]
    arrivals[10] += 500_000
    arrivals[20] -= 300_000
    found = judge(arrivals, per_second=1000)
    assert (found.p50_us, found.p999_us, found.max_us) == (0, 300, 500)


def test_arrivals_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "arrivals.bin"
    path.write_bytes(array("q", [0, 5, 3]).tobytes())
    assert read_instants(path) == [0, 5, 3]


def test_nginx_status() -> None:
    text = (Path(__file__).parent / "captured" / "nginx-status.txt").read_text()
    assert requests_of_status(text) == 1


def test_nginx_listens_on_loopback_only() -> None:
    text = config(8080, Path("/f"), 20_000, as_root=False)
    assert "listen 127.0.0.1:8080 " in text
    assert "worker_connections 19900;" in text
    assert "user root" not in text
    assert "ssl" not in text
    with_tls = config(8080, Path("/f"), 20_000, as_root=False, tls_port=8443)
    assert "listen 127.0.0.1:8443 ssl http2 " in with_tls
    assert "ssl_certificate /f/cert.pem;" in with_tls


@pytest.mark.parametrize(
    ("limited", "tries", "reached"), [(1, 20, True), (2, 20, False), (0, 2, True), (1, 2, False)]
)
def test_one_try_of_twenty_may_be_generator_limited(limited: int, tries: int, reached: bool) -> None:
    result = Result("example", "", "")
    tried = [Tried(number < limited, 0.5, 3.0, 2.0) for number in range(tries)]
    conclude(result, {"replay": tried}, {})
    assert (result.goals[0].figure, result.goals[0].reached) == (f"{limited} of {tries}", reached)
    assert result.rows == [["bin/replay", f"{limited} of {tries}", "0.50 ms", "0.50 ms", "3.00 ms", "2.0 s"]]


def test_made_up_logs_are_the_same_every_time() -> None:
    first, second = list(logs.realistic(500)), list(logs.realistic(500))
    assert first == second
    assert len({line.split()[0] for line in first}) > 300
    visits = list(logs.sessions(clients=5, requests_each=3, path="/x", pauses_s=(1, 4)))
    assert len(visits) == 15
    assert [line.split("[")[1][:20] for line in visits] == sorted(line.split("[")[1][:20] for line in visits)


def test_a_log_of_different_requests_has_as_many_clients_as_addresses() -> None:
    requests = [re.split(r'[ "]+', line, maxsplit=9) for line in logs.different(640, "/pages/", clients=64)]
    assert len({words[6] for words in requests}) == 640
    assert all(words[6].startswith("/pages/") for words in requests)
    assert len({(words[0], words[-1].split('" "')[1]) for words in requests}) == 64


def test_wrk_gets_a_request_of_the_usual_length(tmp_path: Path) -> None:
    def line(target: str) -> str:
        return logs.combined_line(
            "10.0.0.1", datetime(2026, 11, 1, tzinfo=UTC), target, 200, 9, "https://r/", "A (b)"
        )

    log = tmp_path / "log"
    log.write_text(line("/short") + line("/pages/much-longer-than-the-others") + line("/as-usual"))
    target, headers = typical(log)
    assert target == "/as-usual"
    assert headers[:2] == ("User-Agent: A (b)", "Referer: https://r/")
    flood = Flood("http://h/as-usual", 6, 64, tmp_path, log, headers=headers)
    assert tool_wrk.command(flood)[4:6] == ["-HUser-Agent: A (b)", "-HReferer: https://r/"]


def test_a_log_is_sent_with_its_own_headers_only_where_asked() -> None:
    one_url = Flood("http://h/x", 6, 64, Path("/s"), Path("/l"))
    assert "User-Agent:" in tool_replay.command(one_url)
    assert "User-Agent:" not in tool_replay.command(replace(one_url, as_logged=True))


STOLEN = [
    ("nothing was taken", [10, 0, 10, 80, 0, 0, 0, 0, 0, 0], 0.0),
    ("two of five seconds", [30, 0, 30, 0, 0, 0, 0, 40, 0, 0], 0.4),
    ("a guest's time stands under user as well", [60, 0, 0, 0, 0, 0, 0, 40, 60, 0], 0.4),
    ("no time went by", [0] * 10, None),
]


@pytest.mark.parametrize(("why", "ticks", "share"), STOLEN, ids=[row[0] for row in STOLEN])
def test_what_the_hypervisor_took(why: str, ticks: list[int], share: float | None) -> None:
    before = [7] * len(ticks)
    assert stolen_share(before, [tick + 7 for tick in ticks]) == share, why


# The page: what is written anew, and what is kept.


def _result() -> Result:
    return Result(
        case="max",
        title="As fast as it goes",
        setting="On loopback.",
        goals=[Goal("requests/s against wrk", "0.93 × (0.91 to 0.95)", "≥ 1 ×", False)],
        columns=["program", "requests/s"],
        rows=[["wrk", "100,000"]],
        notes=["A note."],
        rounds=5,
        date="2026-11-20 12:00 UTC",
        machine={"CPU": "a CPU, 2 cores", "load when it began": "0.01"},
        versions={"wrk": "4.1.0", "hey": "not installed: go is not there, which installs it"},
    )


def test_a_page_says_what_was_not_reached_and_on_what_machine() -> None:
    page = document([_result()], None)
    assert "not reached: 0.93 × (0.91 to 0.95)" in page
    assert "a CPU, 2 cores" in page
    assert "4.1.0" in page
    assert "not installed: go is not there, which installs it" in page
    assert "*2026-11-20 12:00 UTC, 5 rounds, load of the machine when it began 0.01.*" in page


def test_a_page_says_what_the_hypervisor_took() -> None:
    quiet, busy = replace(_result(), stolen_share=0.004), replace(_result(), stolen_share=0.41)
    taken = "% of the processors' time taken by the hypervisor"
    said = document([quiet, busy], None).replace("\n", " ")
    assert f"0.01, 0.4{taken}.*" in said
    assert f"0.01, 41.0{taken}; measure again on a quieter machine.*" in said


def test_a_page_without_figures_says_how_to_get_them() -> None:
    assert "Nothing was measured yet: `make peers` does it." in document([], None)


def test_what_people_wrote_is_kept() -> None:
    first = document([_result()], None)
    edited = first.replace("Nothing has been written here yet.", "Because of X.").replace(
        "# How", "# Just how"
    )
    changed = _result()
    changed.rows = [["wrk", "200,000"]]
    second = document([changed], edited)
    assert "Because of X." in second
    assert second.startswith("# Just how")
    assert "200,000" in second
    assert "100,000" not in second
    assert second.count(BEGIN) == second.count(END) == 1


def test_a_result_survives_being_kept_as_json() -> None:
    assert Result.from_json(_result().to_json()) == _result()


def test_cells_cannot_break_the_table() -> None:
    assert table(["a"], [["x|y\nz"]]).splitlines()[2] == "| x\\|y z |"
