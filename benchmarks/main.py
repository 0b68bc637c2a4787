"""The command line of the peers' benchmark."""

import argparse
import json
import os
import resource
import signal
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType, ModuleType

from benchmarks import (
    case_example,
    case_log,
    case_max,
    case_module,
    case_open,
    case_pace,
    case_parse,
    case_report,
    case_share,
    case_shared,
    case_stall,
    case_tls,
    case_users,
    machine,
)
from benchmarks.document import document, plain
from benchmarks.installing import Installed, install
from benchmarks.paths import DOCUMENT, RESULTS, SCRATCH
from benchmarks.plan import BenchmarkPlan
from benchmarks.result import MOST_STOLEN, Result
from benchmarks.say import say

CASES: dict[str, ModuleType] = {
    case.NAME: case
    for case in (
        case_parse,
        case_max,
        case_log,
        case_tls,
        case_module,
        case_open,
        case_shared,
        case_pace,
        case_share,
        case_stall,
        case_users,
        case_example,
        case_report,
    )
}

_OPEN_FILES = 131_072

_EXAMPLES = """examples:
  make peers                                  everything, about 90 minutes, and docs/peers.md
  make peers WRK2=../wrk2                     the same with wrk2, built from its source
  benchmarks/run --only max --rounds 3       one case; writes no document
  benchmarks/run --only max --document docs/peers.md
                                              one case, and the page with the last figures of all others
  benchmarks/run --quick                     a few minutes, to see that all works; writes no document
  benchmarks/run --only max --against ../parent/bin/replay
                                              two builds of bin/replay in turns; writes no document
  benchmarks/run --install-only              get the peers, run nothing

exit status: 0 every goal was reached, 1 one was not or could not be measured, 2 usage
"""


def main(argv: list[str] | None = None) -> int:
    args = _arguments(argv)
    signal.signal(signal.SIGTERM, _interrupt)
    _allow_many_files()
    try:
        return _main(args)
    except KeyboardInterrupt:
        say("interrupted; everything that was started is stopped")
        return 130


def _main(args: argparse.Namespace) -> int:
    names = args.only or list(CASES)
    needed = {peer for name in names for peer in CASES[name].NEEDS}
    given = {name: path for name, path in (("against", args.against), ("wrk2", args.wrk2)) if path}
    peers = install(sorted(needed - ({"against"} if args.against is None else set()), key=_order), given)
    if args.install_only:
        return 0 if all(peer.version for peer in peers.values()) else 1
    folder = _folder(args)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if machine.busy():
            say("something else is at work on this machine: the figures will be only indicative")
        result = _run_case(name, BenchmarkPlan(args.rounds, args.quick, peers), peers)
        path = folder / f"{name}.json"
        path.write_text(json.dumps(result.to_json(), indent=1) + "\n")
        say(f"{name}: done; everything raw is in {os.path.relpath(path)}")
    if args.document:
        known = [_read(folder, name) for name in CASES if (folder / f"{name}.json").exists()]
        args.document.write_text(
            document(known, args.document.read_text() if args.document.exists() else None)
        )
        say(f"written: {os.path.relpath(args.document)}")
    results = [_read(folder, name) for name in names]
    print(plain(results), end="")
    return 0 if all(result.all_reached() for result in results) else 1


def _run_case(name: str, plan: BenchmarkPlan, peers: dict[str, Installed]) -> Result:
    before, ticks = machine.facts(), machine.processor_ticks()
    case = CASES[name]
    result: Result = case.run_case(plan)
    result.stolen_share = machine.stolen_share(ticks, machine.processor_ticks())
    if result.stolen_share is not None and result.stolen_share > MOST_STOLEN:
        say(f"{name}: the hypervisor took {result.stolen_share:.0%} of the processors' time: measure again")
    result.rounds = min(plan.rounds, getattr(case, "MOST_ROUNDS", plan.rounds))
    result.date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    result.machine = before
    result.versions = {peer: text for peer, text in plan.versions().items() if peer in case.NEEDS}
    return result


def _folder(args: argparse.Namespace) -> Path:
    """The place of the figures; what is short, or beside a program of one's own, is for no document."""
    return RESULTS.joinpath(*(["against"] if args.against else []), *(["quick"] if args.quick else []))


def _read(folder: Path, name: str) -> Result:
    return Result.from_json(json.loads((folder / f"{name}.json").read_text()))


def _order(peer: str) -> int:
    """The quick ones first, so that what is wrong with the machine shows early."""
    known = (
        "replay",
        "against",
        "goaccess",
        "nginx",
        "wrk",
        "wrk2",
        "h2load",
        "openssl",
        "arrivals",
        "stall",
        "hey",
        "vegeta",
        "locust",
        "grinder",
        "oha",
        "k6",
        "k6x",
    )
    return known.index(peer)


def _allow_many_files() -> None:
    """100,000 users need as many files here and in nginx. Root may raise the limit; children inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (max(hard, _OPEN_FILES), hard):
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
            return


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks/run",
        description="Compare Plimsoll with its peers on this machine, and write docs/peers.md.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", action="append", choices=list(CASES), help="this case only; may be repeated"
    )
    parser.add_argument("--rounds", type=_positive, help="how many rounds (default: 5, or 1 with --quick)")
    parser.add_argument(
        "--quick", action="store_true", help="small and short; figures mean little, and go into no document"
    )
    parser.add_argument(
        "--against",
        type=_program,
        metavar="FILE",
        help="another bin/replay, that takes its turn beside this one; writes no document",
    )
    parser.add_argument(
        "--wrk2", type=_source, metavar="DIR", help="the source of wrk2, which is in no package registry"
    )
    parser.add_argument(
        "--document",
        type=Path,
        metavar="FILE",
        help="the page to write (default: docs/peers.md, of all cases only)",
    )
    parser.add_argument("--install-only", action="store_true", help="get the peers and stop")
    args = parser.parse_args(argv)
    if args.document and (args.quick or args.against):
        parser.error("--document: what --quick or --against measures goes into no document")
    if not (args.only or args.quick or args.against):
        args.document = args.document or DOCUMENT
    args.rounds = args.rounds or (1 if args.quick else 5)
    SCRATCH.mkdir(parents=True, exist_ok=True)
    return args


def _program(text: str) -> Path:
    path = Path(text).expanduser().resolve()
    if not (path.is_file() and os.access(path, os.X_OK)):
        raise argparse.ArgumentTypeError(f"{text} is no program")
    return path


def _source(text: str) -> Path:
    path = Path(text).expanduser().resolve()
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is no folder")
    return path


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
