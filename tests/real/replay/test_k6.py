"""The replay inside k6: one instance, four in network namespaces, one that dies; and any script's output."""

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.namespaces import Network, network, segments
from tests.support.programs import ACCESS_LOG, LONGEST_S, PLIMSOLL, ROOT, Replay, need, open_to_all, wait_for
from tests.support.servers import Nginx, logged, received

K6 = ROOT / "bin" / "k6-plimsoll"
K6_RUN = (str(K6), "run", "--quiet", "--no-usage-report", "--address", "")
SCRIPT = """
import plimsoll from 'k6/x/plimsoll';
const options_ = JSON.parse(__ENV.OPTIONS);
export const options = {
  scenarios: { replay: plimsoll.scenario({ instances: Number(__ENV.INSTANCES) }) },
  thresholds: JSON.parse(__ENV.THRESHOLDS || '{}'),
};
const log = plimsoll.open(options_);
export default function () { log.replay(); }
"""
PERCENTILES = {"p50": 50, "p90": 90, "p99": 99, "p99.9": 99.9}


@pytest.fixture(scope="session", autouse=True)
def k6() -> None:
    """Builds it, which the compiler's cache makes quick from the second time on."""
    subprocess.run([need("make"), "-s", "k6"], cwd=ROOT, check=True, timeout=1500)


@pytest.fixture
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Network, Nginx]]:
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    with network(4) as net:
        root = tmp_path_factory.mktemp("nginx")
        open_to_all(root.parent)
        server = Nginx(root, net.address, net.within(net.hub))
        yield net, server
        server.stop()


def options(target: str, out: Path, **more: object) -> str:
    return json.dumps({"logs": str(ACCESS_LOG), "target": target, "out": str(out), "speed": 20, **more})


def begin(
    script: Path,
    options: str,
    within: Sequence[str] = (),
    part: Sequence[str] = (),
    instances: int | None = None,
    more: Sequence[str] = (),
) -> subprocess.Popen[str]:
    """Start one instance; `part` is its segment and the sequence of all, `more` are k6's own options."""
    script.write_text(SCRIPT)
    count = instances or (part[1].count(",") if part else 1)
    segment = ("--execution-segment", part[0], "--execution-segment-sequence", part[1]) if part else ()
    told = ("--env", f"OPTIONS={options}", "--env", f"INSTANCES={count}", str(script))
    command = [*within, *K6_RUN, "--summary-mode", "disabled", *more, *segment, *told]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def soon(seconds: float) -> str:
    """An instant so many seconds from now, as startAt wants it."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def run_of(out: Path, index: int | None = None) -> Path:
    """The run directory of one instance, or the only one."""
    found = [path for path in out.iterdir() if path.is_dir() and not path.is_symlink()]
    if index is not None:
        found = [path for path in found if f"-{index + 1}of" in path.name]
    assert len(found) == 1, found
    return found[0]


def facts(run: Path) -> dict[str, object]:
    read: dict[str, object] = json.loads((run / "run.json").read_text())
    return read


def schedule(run: Path) -> dict[int, int]:
    """Due instants by line of the log."""
    records = np.load(run / "requests.npy")
    return dict(zip(records["line"].tolist(), records["due_ns"].tolist(), strict=True))


def response_us(runs: list[Path]) -> NDArray[np.int64]:
    records = np.concatenate([np.load(run / "requests.npy") for run in runs])
    found: NDArray[np.int64] = records["lag_us"].astype(np.int64) + records["total_us"]
    return found


def merge(shards: list[Path], out: Path) -> subprocess.CompletedProcess[str]:
    command = [str(PLIMSOLL), "merge", *map(str, shards), "--out", str(out)]
    return subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)


def four(net: Network, server: Nginx, tmp_path: Path, **more: object) -> list[subprocess.Popen[str]]:
    parts, sequence = segments(4)
    said = options(server.url, tmp_path / "shards", startAt=soon(8), **more)
    return [
        begin(tmp_path / f"{number}.js", said, net.within(name), (part, sequence))
        for number, (name, part) in enumerate(zip(net.namespaces, parts, strict=True))
    ]


def test_one_instance_replays_as_bin_replay_does(nginx: Nginx, replay: Replay, tmp_path: Path) -> None:
    told = replay(str(ACCESS_LOG), "--target", nginx.url, "--speed", "20", "--warmup", "2s")
    assert told.returncode == 0, told.stderr
    inside = begin(tmp_path / "one.js", options(nginx.url, tmp_path / "k6", warmup="2s"))
    said, _ = inside.communicate(timeout=300)
    assert inside.returncode == 0, said
    ours, theirs = run_of(tmp_path / "k6"), tmp_path / "results" / "latest"
    assert schedule(ours) == schedule(theirs)
    summaries = [json.loads((run / "summary.json").read_text())["requests"] for run in (ours, theirs)]
    for key in ("total", "sent", "skipped", "unsent", "warmup", "errors"):
        assert summaries[0][key] == summaries[1][key], key
    assert (ours / "routes.json").read_text() == (theirs / "routes.json").read_text()
    assert facts(ours)["status"] == "complete"
    assert "shard" not in facts(ours)


def test_k6s_outputs_and_thresholds_get_every_request(nginx: Nginx, tmp_path: Path) -> None:
    samples = tmp_path / "samples.json"
    instance = begin(
        tmp_path / "one.js",
        options(nginx.url, tmp_path / "k6", limit=1200, speed=100),
        more=["--out", f"json={samples}", "--env", 'THRESHOLDS={"plimsoll_response": ["p(50)<0.0001"]}'],
    )
    said, _ = instance.communicate(timeout=LONGEST_S)
    assert instance.returncode == 99, said
    run = run_of(tmp_path / "k6")
    assert facts(run)["status"] == "complete", "the threshold is k6's answer, and no matter of the run"
    values: dict[str, list[float]] = {}
    for line in samples.read_text().splitlines():
        sample = json.loads(line)
        if sample["type"] == "Point":
            values.setdefault(sample["metric"], []).append(sample["data"]["value"])
    assert sorted(values["plimsoll_response"]) == sorted((response_us([run]) / 1000).tolist())
    assert sum(values["http_reqs"]) == len(values["http_req_duration"]) == len(np.load(run / "requests.npy"))


def test_four_instances_are_the_log_once_on_one_schedule(
    hub: tuple[Network, Nginx], nginx: Nginx, replay: Replay, tmp_path: Path
) -> None:
    net, server = hub
    running = four(net, server, tmp_path)
    for instance in running:
        said, _ = instance.communicate(timeout=300)
        assert instance.returncode == 0, said
    server.stop()
    shards = [run_of(tmp_path / "shards", index) for index in range(4)]

    old = logged(ACCESS_LOG)
    assert Counter(key for _, key in received(server.log)) == Counter(key for key in old if key)

    parts = [schedule(shard) for shard in shards]
    union = {line: due for part in parts for line, due in part.items()}
    assert len(union) == sum(map(len, parts))
    assert min(map(len, parts)) > 0
    starts = {facts(shard)["started_at"] for shard in shards}
    assert len(starts) == 1, "they share one start instant"
    for shard in shards:
        told = facts(shard)["shard"]
        assert isinstance(told, dict)
        assert told["planned"] == [len(part) for part in parts]

    done = merge(shards, tmp_path / "merged")
    assert done.returncode == 0, done.stderr
    merged = json.loads((tmp_path / "merged" / "summary.json").read_text())
    every = response_us(shards)
    for name, percent in PERCENTILES.items():
        brute = np.quantile(every, percent / 100, method="inverted_cdf") / 1000
        assert merged["response_ms"][name] == pytest.approx(brute)
    assert merged["requests"]["sent"] == len(every)
    assert schedule(tmp_path / "merged") == union

    # One that replays all of it has the same schedule, to the nanosecond.
    alone = replay(str(ACCESS_LOG), "--target", nginx.url, "--speed", "20")
    assert alone.returncode == 0, alone.stderr
    assert schedule(tmp_path / "results" / "latest") == union


@pytest.mark.slow
def test_an_instance_that_dies_is_named_and_its_unsent_requests_are_counted(
    hub: tuple[Network, Nginx], tmp_path: Path
) -> None:
    net, server = hub
    running = four(net, server, tmp_path)
    wait_for("the third has sent something", lambda: _sent(tmp_path / "shards", 2))
    # `ip netns exec` becomes k6 itself, so that this is k6's death.
    os.kill(running[2].pid, signal.SIGKILL)
    for instance in running:
        instance.communicate(timeout=300)
    assert [instance.returncode for instance in running] == [0, 0, -signal.SIGKILL, 0]
    shards = [run_of(tmp_path / "shards", index) for index in range(4)]
    planned = facts(shards[0])["shard"]["planned"][2]  # type: ignore[index]
    sent = len(np.load(shards[2] / "requests.npy", mmap_mode="r"))
    assert 0 < sent < planned
    for path in shards[2].iterdir():  # a run whose files stand still for ten seconds has no writer any more
        os.utime(path, (time.time() - 11,) * 2)

    done = merge(shards, tmp_path / "merged")
    assert done.returncode == 1, done.stderr
    told = facts(tmp_path / "merged")
    assert told["status"] == "interrupted"
    assert "3 of 4" in str(told["reason"])
    merged = json.loads((tmp_path / "merged" / "summary.json").read_text())
    assert merged["requests"]["unsent"] == planned - sent


def _sent(shards: Path, index: int) -> bool:
    """Whether an instance has written records."""
    found = list(shards.glob(f"*-{index + 1}of4/requests.npy")) if shards.is_dir() else []
    return bool(found) and _holds_some(found[0])


def _holds_some(records: Path) -> bool:
    return records.stat().st_size > 600


def test_instances_with_nothing_to_do_are_refused(nginx: Nginx, tmp_path: Path) -> None:
    parts, sequence = segments(4)
    few = begin(tmp_path / "few.js", options(nginx.url, tmp_path / "few"), (), (parts[0], sequence), 1)
    said, _ = few.communicate(timeout=LONGEST_S)
    assert few.returncode != 0
    assert "too few virtual users" in said
    assert not (tmp_path / "few").exists()


@pytest.mark.parametrize(
    ("says", "given", "wants"),
    [
        ("what is unknown is named", {"sped": 3}, "sped"),
        ("all that is wrong is told at once", {"speed": "fast", "include": "("}, "include"),
        ("and so is the other one", {"speed": "fast", "include": "("}, "speed"),
        ("a start that was yesterday is none", {"startAt": "2020-01-01T00:00:00Z"}, "startAt"),
        ("what is not a time neither", {"startAt": "soon"}, "startAt"),
        ("a secret does not belong into a script", {"header": {"Cookie": "a=b"}}, "headerFile"),
        ("k6 has its own summary", {"json": True}, "json"),
        ("a log that is not there", {"logs": "/nowhere/access.log"}, "/nowhere/access.log"),
    ],
)
def test_what_is_asked_wrongly_is_said(
    says: str, given: dict[str, object], wants: str, tmp_path: Path, nginx: Nginx
) -> None:
    instance = begin(tmp_path / "wrong.js", options(nginx.url, tmp_path / "out", **given))
    said, _ = instance.communicate(timeout=LONGEST_S)
    assert instance.returncode != 0, says
    assert wants in said, says
    assert "panic" not in said


def test_ctrl_c_ends_the_run_in_good_order(nginx: Nginx, tmp_path: Path) -> None:
    instance = begin(tmp_path / "long.js", options(nginx.url, tmp_path / "out", speed=1))
    records = (tmp_path / "out").glob
    wait_for("something is recorded", lambda: [1 for file in records("*/requests.npy") if _holds_some(file)])
    instance.send_signal(signal.SIGINT)
    instance.communicate(timeout=LONGEST_S)
    assert instance.returncode != 0
    run = run_of(tmp_path / "out")
    assert facts(run)["status"] == "interrupted"
    requests = json.loads((run / "summary.json").read_text())["requests"]
    assert requests["sent"] > 0
    assert requests["total"] == requests["sent"] + requests["unsent"] + sum(requests["skipped"].values())


SHOP = """
import http from 'k6/http';
import { group } from 'k6';
export const options = {
  vus: 4,
  iterations: 300,
  thresholds: { http_req_duration: ['p(99)<60000'], http_reqs: ['count>=900'] },
};
export default function () {
  http.get(__ENV.TARGET + '/');
  group('shop', () => http.get(__ENV.TARGET + '/basket?id=<script>'));
  http.get(__ENV.TARGET + '/x', { tags: { name: 'named' } });
}
export function handleSummary(data) { return { [__ENV.SUMMARY]: JSON.stringify(data.metrics) }; }
"""


def test_any_script_ends_with_a_run_directory_whose_figures_are_k6s_own(nginx: Nginx, tmp_path: Path) -> None:
    script, summary = tmp_path / "shop.js", tmp_path / "summary.json"
    script.write_text(SHOP)
    told = ("--env", f"TARGET={nginx.url}", "--env", f"SUMMARY={summary}", str(script))
    done = subprocess.run(
        [*K6_RUN, "--out", f"plimsoll={tmp_path / 'runs'}", *told],
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    metrics = json.loads(summary.read_text())
    run = tmp_path / "runs" / "latest"
    assert facts(run)["status"] == "complete"
    records = np.load(run / "requests.npy")
    assert len(records) == metrics["http_reqs"]["values"]["count"] == 900
    assert json.loads((run / "routes.json").read_text()) == ["page", "shop", "named"]
    assert Counter(records["status"].tolist()) == {200: 900}
    # k6's duration is without the wait for a connection, which new ones have
    reused = records[records["flags"] & 1 == 1]
    assert records["total_us"].max() / 1000 >= metrics["http_req_duration"]["values"]["max"] - 0.001
    assert len(reused) > 800
    report = subprocess.run(
        [str(PLIMSOLL), "report", str(run), "--json"],
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=True,
    )
    assert json.loads(report.stdout)["runs"][0]["requests"]["sent"] == 900
