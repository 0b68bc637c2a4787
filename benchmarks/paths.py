"""The places of all files."""

from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
WORK = HERE / "installed"
BIN = WORK / "bin"
DATA = WORK / "data"
RESULTS = WORK / "results"
SCRATCH = WORK / "scratch"
EXAMPLE = ROOT / "examples" / "access.log"
DOCUMENT = ROOT / "docs" / "peers.md"
REPLAY = ROOT / "bin" / "replay"
PROJECT_PYTHON = ROOT / ".venv" / "bin" / "python"

OHA = WORK / "cargo" / "bin" / "oha"
HEY = BIN / "hey"
VEGETA = BIN / "vegeta"
K6 = BIN / "k6"
K6X = ROOT / "bin" / "k6-plimsoll"
ARRIVALS = BIN / "arrivals"
STALL = BIN / "stall"
AGAINST = BIN / "against"
WRK2 = BIN / "wrk2"
LOCUST = WORK / "locust" / "bin" / "locust"
GRINDER = WORK / "grinder"
