"""Machines and experiments that run nothing: they note, and answer as they were told."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from plimsoll.lab.errors import MachineError
from plimsoll.lab.experiment.design import plan_runs
from plimsoll.lab.experiment.folder import make_folder
from plimsoll.lab.experiment.labfile import Lab
from plimsoll.lab.experiment.status.watch import Status, StatusReader
from plimsoll.lab.fileio.sysbench import FileioSettings
from plimsoll.lab.machine import CommandResult, Line, Machine
from plimsoll.lab.saturators import make_saturator
from plimsoll.lab.saturators.saturator import Runner, SaturatorSettings
from plimsoll.lab.tuning import apply
from plimsoll.lab.tuning.apply import JournalPlace
from tests.support.recorded import ARCSTATS, HUGEPAGE, SCHEDULER, sysbench_output

Answer = Callable[[Sequence[str]], tuple[int, str, str]]


class ScriptedProcess:
    """Writes its lines, and ends; with `status` None it runs until it is stopped."""

    def __init__(self, lines: Sequence[Line], status: int | None) -> None:
        self._lines, self._status = lines, status
        self._ended = asyncio.Event()
        self.stopped = False
        if status is not None:
            self._ended.set()

    async def lines(self) -> AsyncIterator[Line]:
        for line in self._lines:
            yield line
        await self._ended.wait()

    async def wait(self) -> int:
        await self._ended.wait()
        return 143 if self._status is None else self._status

    async def stop(self, grace_s: float = 5.0) -> int:
        self.stopped = True
        self._ended.set()
        return await self.wait()


class NotingMachine:
    """Runs nothing: it notes what it is to run and to start, and `result_of` makes up what comes of it."""

    name: str

    def __init__(self) -> None:
        self.ran: list[tuple[str, ...]] = []

    def result_of(self, command: Sequence[str], stdin: bytes | None) -> CommandResult:
        raise NotImplementedError

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        check: bool = True,
    ) -> CommandResult:
        self.ran.append(tuple(command))
        done = self.result_of(command, stdin)
        if check and done.status:
            raise MachineError(self.name, f"ended with status {done.status}", command, done.err, done.status)
        return done

    async def read_text(self, path: str) -> str:
        raise MachineError(self.name, f"{path} cannot be read")

    async def close(self) -> None:
        pass


class ScriptedMachine(NotingMachine):
    """`answer` gives status, output and errors of what is run, `begun` the processes that are started."""

    name = "scripted"

    def __init__(
        self,
        answer: Answer = lambda command: (0, "", ""),
        begun: Callable[[Sequence[str]], ScriptedProcess] = lambda command: ScriptedProcess([], None),
    ) -> None:
        super().__init__()
        self._answer, self._begun = answer, begun
        self.processes: list[ScriptedProcess] = []

    def result_of(self, command: Sequence[str], stdin: bytes | None) -> CommandResult:
        return CommandResult(tuple(command), *self._answer(command))

    async def start(self, command: Sequence[str]) -> ScriptedProcess:
        self.ran.append(tuple(command))
        self.processes.append(self._begun(command))
        return self.processes[-1]


@asynccontextmanager
async def at_work(
    machine: Machine, settings: SaturatorSettings, label: str, events: list[dict[str, Any]] | None = None
) -> AsyncIterator[Runner[Any]]:
    """A saturator from its start to its stop, that tries again at once; `events` get what it tells."""
    one = make_saturator(machine, settings, label, ([] if events is None else events).append)
    assert isinstance(one, Runner)
    one.retry_s = 0.001
    await one.start()
    try:
        yield one
    finally:
        await one.stop()


BenchAnswer = tuple[int, str, str]  # status, output, errors


def bench_machine(
    measured: Callable[[list[str]], BenchAnswer], *, folder_exists: bool = False, free: int = 1 << 30
) -> ScriptedMachine:
    """A machine with `free` bytes, on which the program that measures gives the answer of `measured`."""

    def answer(command: Sequence[str]) -> BenchAnswer:
        words = list(command)
        if words[0] == "mkdir":
            return (1, "", "File exists") if folder_exists else (0, "", "")
        if words[0] == "find":
            return 0, words[1] + "\n" if folder_exists else "", ""
        if words[0] == "df":
            return 0, f"Avail\n{free}\n", ""
        return measured(words)

    return ScriptedMachine(answer)


SMALL = FileioSettings(directory="/srv/disk", file_size=64 << 20, threads=(2,), time_s=2)


def sysbench_machine(folder_exists: bool = False, free: int = 1 << 30, fails: str = "") -> ScriptedMachine:
    """A machine with sysbench, as recorded."""

    def measured(words: list[str]) -> BenchAnswer:
        mode = next((w.partition("=")[2] for w in words if w.startswith("--file-test-mode=")), "")
        if mode and mode == fails:
            return 1, "FATAL: Failed to read file! errno = 5 (Input/output error)\n", ""
        return 0, sysbench_output(mode) if mode else "", ""

    return bench_machine(measured, folder_exists=folder_exists, free=free)


# Backends whose volumes the lab makes or finds, and one without any.
_FOLDER = {"kind": "folder", "path": "/tank/lab"}
_STATIC = {"driver": "static", "target": "http://127.0.0.1:9"}
VOLUMES: dict[str, dict[str, Any]] = {
    "zfs": {
        "name": "zfs",
        "disk": {"kind": "emulated", "filesystem": "zfs", "size_bytes": "1G"},
        "clone": {"driver": "compose"},
    },
    "tank": {"name": "tank", "disk": _FOLDER, "clone": {"driver": "compose"}},
    "bare": {"name": "bare", "clone": _STATIC},
    "placed": {"name": "placed", "disk": _FOLDER, "clone": _STATIC},
}


# A machine whose files and programs are tables.


class FakeProcess:
    """A process that wrote its lines at once, and ends when it is told to."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self.stopped = False
        self.broken = False

    async def lines(self) -> AsyncIterator[Line]:
        for text in self._lines:
            yield Line("out", text, 0)

    async def wait(self) -> int:
        return 0

    async def stop(self, grace_s: float = 5.0) -> int:
        self.stopped = True
        if self.broken:
            raise MachineError("far", "the connection broke")
        return 143


class FakeMachine(NotingMachine):
    """Reads `files` through the script that the lab has for it; `tee` writes them; the rest is `answers`."""

    name = "far"

    def __init__(self, files: dict[str, str] | None = None, answers: dict[str, str] | None = None) -> None:
        super().__init__()
        self.files, self.answers = files or {}, answers or {}
        self.refuses: Callable[[tuple[str, ...], bytes | None], bool] = lambda _command, _stdin: False
        self.process = FakeProcess([])

    def result_of(self, command: Sequence[str], stdin: bytes | None) -> CommandResult:
        line = tuple(command)
        if self.refuses(line, stdin):
            return CommandResult(line, 1, "", "Invalid argument")
        if line[:2] == ("sh", "-c"):
            out = "\x1e" + "".join(self.files.get(path, "") + "\x1e" for path in line[4:])
            return CommandResult(line, 0, out, "")
        if line[0] == "tee":
            assert stdin is not None
            if line[1] not in self.files:
                return CommandResult(line, 1, "", "No such file or directory")
            self.files[line[1]] = stdin.decode()
            return CommandResult(line, 0, stdin.decode(), "")
        for start, out in self.answers.items():
            if " ".join(line).startswith(start):
                return CommandResult(line, 0, out, "")
        return CommandResult(line, 127, "", "not found")

    async def start(self, command: Sequence[str]) -> FakeProcess:
        self.ran.append(tuple(command))
        return self.process

    async def read_text(self, path: str) -> str:
        return self.files[path] if path in self.files else await super().read_text(path)

    @property
    def changes(self) -> list[str]:
        """The commands that change something, as one would type them."""
        return [
            " ".join(line)
            for line in self.ran
            if line[0] == "tee" or line[:2] in (("zfs", "set"), ("zfs", "inherit"))
        ]


QUEUE = "/sys/block/vda/queue"
PARAMETERS = "/sys/module/zfs/parameters"
PROPERTIES = """\
tank/site\tcompression\tlz4\tinherited from tank
tank/site\trecordsize\t131072\tdefault
tank/site\tatime\toff\tlocal
tank/site\tsync\tstandard\treceived
tank/site\tlogbias\t-\t-
"""

PLACE = JournalPlace("plimsoll-lab--a", "experiment lab in /results/lab-1")


class TunedHost(FakeMachine):
    """A FakeMachine that keeps journals of tunings, as its shell would."""

    def result_of(self, command: Sequence[str], stdin: bytes | None) -> CommandResult:
        line = tuple(command)
        if line[:2] != ("sh", "-c") or line[2] not in vars(apply).values():
            return super().result_of(command, stdin)
        path = line[4]
        if self.refuses(line, stdin):
            return CommandResult(line, 1, "", "Read-only file system")
        match line[2]:
            case apply._WRITE if path in self.files:
                return CommandResult(line, 73, "", "")
            case apply._WRITE:
                assert stdin is not None
                self.files[path] = stdin.decode()
            case apply._READ:
                return (
                    CommandResult(line, 0, self.files[path], "")
                    if path in self.files
                    else CommandResult(line, 74, "", "")
                )
            case apply._REMOVE:
                self.files.pop(path, None)
            case apply._LIST:
                names = [one.removeprefix(f"{path}/") for one in self.files if one.startswith(f"{path}/")]
                return CommandResult(line, 0, "".join(f"{name}\n" for name in names) or "*.json\n", "")
        return CommandResult(line, 0, "", "")


def host_to_tune() -> TunedHost:
    return TunedHost(
        {
            f"{QUEUE}/scheduler": SCHEDULER,
            f"{QUEUE}/iosched/fifo_batch": "16\n",
            "/sys/block/vdb/queue/scheduler": "[none] mq-deadline kyber bfq \n",
            "/sys/kernel/mm/transparent_hugepage/defrag": "always defer defer+madvise [madvise] never\n",
            f"{QUEUE}/nr_requests": "256\n",
            f"{QUEUE}/read_ahead_kb": "8192\n",
            f"{QUEUE}/wbt_lat_usec": "75000\n",
            "/sys/kernel/mm/transparent_hugepage/enabled": HUGEPAGE,
            f"{PARAMETERS}/zfs_arc_max": "0\n",
            f"{PARAMETERS}/zfs_arc_min": "0\n",
            f"{PARAMETERS}/zfs_txg_timeout": "5\n",
            "/proc/spl/kstat/zfs/arcstats": ARCSTATS,
            "/proc/sys/vm/swappiness": "60\n",
            "/proc/sys/vm/dirty_ratio": "20\n",
            "/proc/sys/vm/dirty_bytes": "0\n",
        },
        {
            "zfs get": PROPERTIES,
            "zfs set": "",
            "zfs inherit": "",
            "zpool list": "tank\n",
            "zfs list -H -o name tank/site": "tank/site\n",
            "test -e /sys/block/vd": "",
        },
    )


# An experiment that only writes its journal, by a clock of its own.

STARTS = datetime(2026, 11, 22, 20, 0, tzinfo=UTC)
PHASES = {"before_s": 60, "during_s": 120, "after_s": 60}


def lab_of(out: Path, open_end: bool = False) -> Lab:
    """Return an experiment of eight runs on two clones that the lab makes."""
    disk = {"kind": "folder", "path": "/tank"}
    return Lab.model_validate(
        {
            "name": "scripted",
            "out": str(out),
            "backends": [
                {"name": name, "disk": disk, "clone": {"driver": "compose", "port": port}}
                for name, port in (("one", 8091), ("two", 8092))
            ],
            "scenarios": [{"scenario": "replay", "options": {"log": "access.log"}}],
            "phases": {"during_s": None} if open_end else PHASES,
        }
    )


class ScriptedExperiment:
    """Eight runs whose parts take what they are told to, in seconds."""

    def __init__(self, out: Path, open_end: bool = False, **took_s: float) -> None:
        self.folder = make_folder(lab_of(out, open_end))
        self._runs = plan_runs(self.folder.settings())
        self._took_s = {"make": 40.0, "before": 14.0, "load": 245.0, "after": 3.0} | took_s
        self.ended_at = STARTS

    def ends_seen(self, every_s: float) -> list[datetime]:
        """Return the ends that looks see until the experiment has ended."""
        return [look.ends_at for look in self.looks(every_s) if look.ends_at is not None]

    def looks(self, every_s: float) -> list[Status]:
        """Return the looks of somebody who looks every so many seconds."""
        now = STARTS
        watch = StatusReader(self.folder, lambda: now)
        found = []
        with ExitStack() as stack:
            stack.enter_context(self.folder.journal.lock())
            for at, line in self._script():
                while now < at:
                    found.append(watch.read())
                    now = min(now + timedelta(seconds=every_s), at)
                self._note(at, line)
        self.ended_at = now
        return found

    def _note(self, at: datetime, line: dict[str, str]) -> None:
        with self.folder.journal.path.open("a") as file:
            file.write(json.dumps({"at": at.isoformat(), **line}) + "\n")
        if line["what"] == "run finished":
            run = self.folder.path / "runs" / line["run"]
            run.mkdir()
            (run / "run.json").touch()

    def _script(self) -> Iterator[tuple[datetime, dict[str, str]]]:
        at, made = STARTS, set[str]()
        yield at, {"what": "begun"}
        for run in self._runs:
            if run.backend not in made:
                made.add(run.backend)
                yield at, {"what": "making", "backend": run.backend}
                at += timedelta(seconds=self._took_s["make"])
                yield at, {"what": "made", "backend": run.backend}
            of = {"run": run.name, "backend": run.backend}
            yield at, {"what": "run begun", **of}
            for part, ended in (("before", "load begun"), ("load", "load ended"), ("after", "run finished")):
                at += timedelta(seconds=self._took_s[part])
                yield at, {"what": ended, **of}
        yield at, {"what": "removing"}
        yield at + timedelta(seconds=5), {"what": "ended"}
