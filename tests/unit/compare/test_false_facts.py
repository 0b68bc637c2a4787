"""Facts that make runs false or doubtful evidence: each fault, and only it, changes what is said."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis.compare.looks import LOOKS_FILE
from plimsoll.analysis.evidence.finding import FindingKind
from plimsoll.analysis.evidence.finding import FindingKind as Kind
from plimsoll.common.errors import Severity
from tests.support.comparable import compare_json, finding_names, gated, runs_of, write_both
from tests.support.rundir import change, change_records, load_records

GATES = gated("phase: during, at_most_ratio: 1.1")
VERDICTS = {1.0: "PASS", 1.5: "FAIL"}
START_NS, STOP_NS = 200_000_000, 1_400_000_000
EVERY_NS = 100_000_000
REUSED, HTTP2, TLS = 1, 2, 4
HIT, MISS, PASS = 1, 2, 3  # of column `served`
NGINX = {"server": ["nginx/1.24.0"], "x_powered_by": ["PHP/8.2.7"]}

Spoil = Callable[[Path], object]


def storage(backend: str) -> dict[str, Any]:
    return {
        "clone": {"driver": "compose", "folder": f"/srv/{backend}", "site": {"size": "small", "seed": 1}},
        "cache": {"state": "cold", "how": ["drop the page cache"]},
        "facts": {
            "kernel": "6.1.0",
            "cpu": "A processor",
            "cpus": 8,
            "memory_bytes": 16 << 30,
            "disks": [
                {"device": backend, "model": "FAST 1TB", "serial": f"S-{backend}", "scheduler": "none"}
            ],
            "pools": [{"pool": f"pool-{backend}"}],
            "datasets": [{"dataset": f"pool-{backend}/site", "properties": {"sync": "standard"}}],
        },
    }


def work(rate: float = 1e8, until_ns: int = STOP_NS) -> list[dict[str, Any]]:
    """Events of what a saturator moved, one each tenth of a second."""
    return [
        {"t_ns": t_ns, "event": "zfs-send bytes", "bytes_per_s": rate if t_ns <= until_ns else 0}
        for t_ns in range(START_NS + EVERY_NS, STOP_NS + 1, EVERY_NS)
    ]


def events(
    start_ns: int = START_NS, stop_ns: int = STOP_NS, moved: list[dict[str, Any]] | None = None
) -> str:
    lines = [{"t_ns": start_ns, "event": "zfs-send", "phase": "start", "saturator": True}]
    lines += work() if moved is None else moved
    lines.append({"t_ns": stop_ns, "event": "zfs-send", "phase": "stop"})
    lines = [line for line in lines if start_ns <= line["t_ns"] <= stop_ns]  # type: ignore[operator]
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.fixture(scope="module", params=list(VERDICTS), ids=["would pass", "would fail"])
def honest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """An experiment in which nothing but the storage differs, and its verdict."""
    folder = write_both(tmp_path_factory.mktemp("honest"), request.param, 5)
    for backend in ("sata", "nvme"):
        for path in runs_of(folder, backend):
            clients = {"counted": 2000, "largest_share": 0.1}
            sender = {"beside_server": True, "cores": 2, "threads": 4, "nice": 0}
            change(path, storage=storage(backend), clients=clients, sender=sender)
            change_records(path, flags=REUSED)
            (path / "events.jsonl").write_text(events())
    found = compare_json(folder, GATES)
    assert (found["findings"], found["gates"][0]["verdict"]) == ([], VERDICTS[request.param])
    return folder, VERDICTS[request.param]


def facts(key: str, value: Any, runs: slice = slice(None), backend: str = "nvme") -> Spoil:
    """Set a fact of `runs` of a backend; `key` is a path such as `storage.facts.kernel`."""

    def spoil(folder: Path) -> None:
        for path in runs_of(folder, backend)[runs]:
            read = json.loads((path / "run.json").read_text())
            at, (*way, last) = read, key.split(".")
            for name in way:
                at = at[int(name) if name.isdigit() else name]
            at[last] = value
            change(path, **read)

    return spoil


def busy(backend: str = "nvme", runs: slice = slice(None), **how: Any) -> Spoil:
    def spoil(folder: Path) -> None:
        for path in runs_of(folder, backend)[runs]:
            (path / "events.jsonl").write_text(events(**how))

    return spoil


def flags(value: int) -> Spoil:
    def spoil(folder: Path) -> None:
        for path in runs_of(folder):
            change_records(path, flags=value)

    return spoil


def served(share: float, runs: slice = slice(None), backend: str = "nvme", rest: int = MISS) -> Spoil:
    """Let a cache give a share of the answers of `runs`, the server the others."""

    def spoil(folder: Path) -> None:
        for path in runs_of(folder, backend)[runs]:
            change_records(path, served=rest)
            change_records(path, slice(0, round(share * len(load_records(path)))), served=HIT)

    return spoil


def each(*spoils: Spoil) -> Spoil:
    """Do several things to a folder."""

    def spoil_all(folder: Path) -> None:
        for spoil in spoils:
            spoil(folder)

    return spoil_all


def both(key: str, value: Any, spoil: Spoil) -> Spoil:
    """Set a fact of all runs, and then spoil some of them."""

    def change_all(folder: Path) -> None:
        facts(key, value, backend="*")(folder)
        spoil(folder)

    return change_all


def called(name: str) -> Spoil:
    """Let the candidate's last run be of a backend of that name, before anybody looked."""

    def rename(folder: Path) -> None:
        (folder / LOOKS_FILE).unlink()
        shutil.rmtree(folder / ".state")
        facts("backend", name, slice(-1, None))(folder)

    return rename


def _sample_hosts(folder: Path, backend: str) -> None:
    for path in runs_of(folder, backend):
        (path / "host.csv").write_text("t_ns,cpu.user_percent\n1000000000,20\n2000000000,20\n")


def software(runs: slice = slice(None), **names: list[str]) -> Spoil:
    return both("server_software", NGINX, facts("server_software", NGINX | names, runs))


def one_disk(folder: Path) -> None:
    for path in runs_of(folder):
        change(path, storage=storage("sata"))


def one_at_two_addresses(folder: Path, **serials: str | None) -> None:
    """Let nothing but addresses, and the serial numbers of the disks, tell the sides apart."""
    one_disk(folder)
    facts("target.url", "http://127.0.0.2:8080")(folder)
    for backend, serial in serials.items():
        facts(f"{DISK}.serial", serial, backend=backend)(folder)


ONE = slice(0, 1)
MERGED = {"of": ["a", "b"], "placed_by": "start_at"}
DOUBT = {"level": "warn", "text": "Instance 2 noted its start 8 s after the one that all share."}
DISK, DATASET = "storage.facts.disks.0", "storage.facts.datasets.0"
ROWS: list[tuple[str, Spoil, Kind]] = [
    (
        "a run of one side loaded another server",
        both("storage.clone.driver", "static", facts("target.url", "http://127.0.0.9:8080", ONE)),
        Kind.MIXED_SIDE,
    ),
    ("one was on another disk of its make", facts(f"{DISK}.serial", "S-other", ONE), Kind.MIXED_SIDE),
    ("one was in another pool", facts("storage.facts.pools.0.pool", "tank", ONE), Kind.MIXED_SIDE),
    ("one was in another folder", facts("storage.clone.folder", "/srv/other", ONE), Kind.MIXED_SIDE),
    ("one was of another dataset", facts(f"{DATASET}.dataset", "tank/other", ONE), Kind.MIXED_SIDE),
    ("one was on another machine", facts("storage.facts.cpu", "Another", ONE), Kind.MIXED_SIDE),
    ("both sides were one disk, pool and folder", one_disk, Kind.ONE_STORAGE),
    ("they were so at two addresses of one machine", one_at_two_addresses, Kind.ONE_STORAGE),
    ("the saturator moved nothing", busy(moved=work(0.0)), Kind.SATURATOR_IDLE),
    ("it was there for a tenth of a second", busy(stop_ns=START_NS + EVERY_NS), Kind.SATURATOR_IDLE),
    ("it began late", busy(start_ns=700_000_000), Kind.SATURATOR_IDLE),
    ("its bytes stopped before the middle", busy(moved=work(until_ns=760_000_000)), Kind.SATURATOR_IDLE),
    ("it did so in one run", busy(runs=ONE, moved=work(until_ns=760_000_000)), Kind.SATURATOR_IDLE),
    ("keep-alive was off", flags(0), Kind.OTHER_CONNECTIONS),
    ("one side spoke HTTP/2", flags(REUSED | HTTP2), Kind.OTHER_CONNECTIONS),
    ("one side spoke TLS", flags(REUSED | TLS), Kind.OTHER_CONNECTIONS),
    ("a cache in front of one side", served(0.12), Kind.CACHE_IN_FRONT),
    ("one in front of one run", served(0.8, ONE), Kind.CACHE_IN_FRONT),
    ("a warmer one", each(served(0.3), served(0.45, backend="sata")), Kind.CACHE_IN_FRONT),
    ("one a little warmer", each(served(0.3), served(0.35, backend="sata")), Kind.OTHER_CACHE_HITS),
    ("one that lets all pass", served(0, backend="sata", rest=PASS), Kind.OTHER_CACHE_HITS),
    ("the caches of one side were warm", facts("storage.cache.state", "warm"), Kind.OTHER_CACHES),
    ("they were in one run", facts("storage.cache.state", "warm", ONE), Kind.OTHER_CACHES),
    ("another kernel", facts("storage.facts.kernel", "6.9.0"), Kind.OTHER_CIRCUMSTANCES),
    ("another kernel in one run", facts("storage.facts.kernel", "6.9.0", ONE), Kind.OTHER_CIRCUMSTANCES),
    ("a machine with more memory", facts("storage.facts.memory_bytes", 64 << 30), Kind.OTHER_CIRCUMSTANCES),
    ("other content", facts("storage.clone.site.seed", 2), Kind.OTHER_CIRCUMSTANCES),
    (
        "another server",
        both("storage.clone.image", "nginx:1.26", facts("storage.clone.image", "nginx:1.27")),
        Kind.OTHER_CIRCUMSTANCES,
    ),
    ("a server that was updated", software(server=["nginx/1.26.2"]), Kind.OTHER_CIRCUMSTANCES),
    ("in one run", software(ONE, server=["nginx/1.26.2"]), Kind.OTHER_CIRCUMSTANCES),
    ("another PHP", software(x_powered_by=["PHP/8.3.1"]), Kind.OTHER_CIRCUMSTANCES),
    ("sync=disabled", facts(f"{DATASET}.properties.sync", "disabled"), Kind.OTHER_CIRCUMSTANCES),
    ("a scheduler that changed", facts(f"{DISK}.scheduler", "bfq", ONE), Kind.OTHER_CIRCUMSTANCES),
    ("loopback", facts("target.url", "http://10.0.0.9"), Kind.OTHER_CIRCUMSTANCES),
    ("from another machine", facts("sender.beside_server", False), Kind.OTHER_CIRCUMSTANCES),
    ("2 clients, not 2,000", facts("clients.counted", 2), Kind.OTHER_CIRCUMSTANCES),
    ("another version of ours", facts("program.version", "9"), Kind.OTHER_VERSION),
    ("a generator of 64 cores", facts("host.cpus", 64), Kind.OTHER_GENERATOR),
    ("which might use 64", facts("sender.cores", 64), Kind.OTHER_GENERATOR),
    ("no facts of the storage", facts("storage.facts", {}), Kind.UNKNOWN_FACTS),
    ("none of the caches", facts("storage.cache", None), Kind.UNKNOWN_FACTS),
    (
        "of four instances, merged",
        facts("merged", MERGED | {"of": ["a", "b", "c", "d"]}),
        Kind.OTHER_GENERATOR,
    ),
    (
        "a name that led elsewhere in one run",
        both(
            "target",
            {"url": "http://shop.example", "addresses": ["10.0.0.1:80"]},
            both("storage.clone.driver", "static", facts("target.addresses", ["10.0.0.2:80"], ONE)),
        ),
        Kind.OTHER_CIRCUMSTANCES,
    ),
    ("nothing of what the host did", lambda folder: _sample_hosts(folder, "sata"), Kind.UNKNOWN_FACTS),
    ("a run that is called NVMe", called("NVMe"), Kind.OTHER_SPELLING),
    ("one with a Cyrillic letter", called("nvm\u0435"), Kind.OTHER_SPELLING),
    (
        "clocks 8 s apart",
        both("merged", MERGED, facts("merged", MERGED | {"clock_error_ms": 8000.0})),
        Kind.MERGED_DOUBTFULLY,
    ),
    (
        "what merge doubted",
        both("merged", MERGED, facts("merged", MERGED | {"says": [DOUBT]})),
        Kind.MERGED_DOUBTFULLY,
    ),
]
NOT_FAULTS: list[tuple[str, Spoil]] = [
    ("ports that the system chose", facts("target.url", "http://127.0.0.1:43210", ONE)),
    ("an address that a clone was given", facts("target.url", "http://127.0.0.2:8080", ONE)),
    ("memory that differs by a kernel's own", facts("storage.facts.memory_bytes", (16 << 30) - (100 << 20))),
    (
        "two disks of one make, with serial numbers of their own",
        partial(one_at_two_addresses, nvme="S-2"),
    ),
    (
        "two machines of one make whose disks say no serial number",
        partial(one_at_two_addresses, sata=None, nvme=None),
    ),
    ("how well data compress", facts(f"{DATASET}.compress_ratio", 1.7, ONE)),
    ("disks of another make on the other side", facts(f"{DISK}.model", "SLOW 4TB")),
    ("a saturator that a faster disk lets move a little more", busy(moved=work(1.9e8))),
    ("a saturator that stopped a little sooner", busy(stop_ns=STOP_NS - EVERY_NS)),
    ("clocks 50 ms apart", both("merged", MERGED, facts("merged", MERGED | {"clock_error_ms": 50.0}))),
    ("one cache in front of both", each(served(0.30), served(0.31, backend="sata"))),
    (
        "one that began cold on both sides",
        each(served(0.9), served(0.89, backend="sata"), served(0.6, ONE), served(0.59, ONE, "sata")),
    ),
    ("answers that say nothing of themselves", software(x_powered_by=[])),
    ("names that one run did not note", both("server_software", NGINX, facts("server_software", None, ONE))),
    (
        "runs of a version that wrote none of it",
        partial(lambda names, p: _forget(p, names), ("sender", "clients")),
    ),
]


def _forget(folder: Path, names: tuple[str, ...]) -> None:
    for backend in ("sata", "nvme"):
        for path in runs_of(folder, backend)[:1]:
            change(path, **dict.fromkeys(names))


@pytest.mark.parametrize(("what", "spoil", "kind"), ROWS, ids=[row[0] for row in ROWS])
def test_each_fault_is_the_finding_of_its_name(
    honest: tuple[Path, str], tmp_path: Path, what: str, spoil: Spoil, kind: FindingKind
) -> None:
    folder, verdict = honest
    spoil(shutil.copytree(folder, tmp_path / "it"))
    found = compare_json(tmp_path / "it", GATES)
    assert finding_names(found) == {kind.label}, what
    blocks = kind.level is Severity.BAD
    assert found["gates"][0]["verdict"] == ("INCONCLUSIVE" if blocks else verdict)
    assert all(each["runs"] and each["remedy"] for each in found["findings"])


@pytest.mark.parametrize(("what", "spoil"), NOT_FAULTS, ids=[row[0] for row in NOT_FAULTS])
def test_what_honest_runs_may_differ_in_is_no_finding(
    honest: tuple[Path, str], tmp_path: Path, what: str, spoil: Spoil
) -> None:
    folder, verdict = honest
    spoil(shutil.copytree(folder, tmp_path / "it"))
    found = compare_json(tmp_path / "it", GATES)
    assert (found["findings"], found["gates"][0]["verdict"]) == ([], verdict), what


@pytest.mark.parametrize(
    ("rate", "passes", "fails"),
    [(0.4e8, "INCONCLUSIVE", "FAIL"), (2.5e8, "PASS", "INCONCLUSIVE")],
    ids=["less beside the candidate", "more beside it"],
)
def test_what_a_side_owes_to_less_work_beside_it_decides_nothing(
    honest: tuple[Path, str], tmp_path: Path, rate: float, passes: str, fails: str
) -> None:
    folder, verdict = honest
    busy(moved=work(rate))(shutil.copytree(folder, tmp_path / "it"))
    found = compare_json(tmp_path / "it", GATES)
    assert finding_names(found) == {"saturator-differs"}
    assert found["gates"][0]["verdict"] == (passes if verdict == "PASS" else fails)


def test_what_was_tuned_on_purpose_is_compared_on_one_disk(tmp_path: Path, honest: tuple[Path, str]) -> None:
    folder, verdict = honest
    copied = shutil.copytree(folder, tmp_path / "it")
    one_disk(copied)
    facts(f"{DATASET}.properties.sync", "disabled")(copied)
    facts("storage.tuning", [{"key": "datasets.@clone.sync", "was": "standard", "set": "disabled"}])(copied)
    found = compare_json(copied, GATES)
    assert (found["findings"], found["gates"][0]["verdict"]) == ([], verdict)
