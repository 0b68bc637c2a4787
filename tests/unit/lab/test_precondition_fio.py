"""The parts of `precondition` below lab.yml: when a volume is steady, how large a filling is, and fio."""

import json

import pytest

from plimsoll.lab.errors import LabError
from plimsoll.lab.fileio import precondition
from plimsoll.lab.fileio.precondition import PreconditionSettings, check_size, filling_bytes, steadiness

GIB = 1 << 30


STEADY = [
    ("five that are equal", [100, 100, 100, 100, 100], True),
    ("only four", [100, 100, 100, 100], None),
    ("all stand still", [0, 0, 0, 0, 0], None),
    ("a range of just 20 % of the average", [100, 110, 90, 100, 100], True),
    ("a range of more", [100, 111, 90, 100, 99], False),
    ("a slope of just 10 %, within the range", [95, 97.5, 100, 102.5, 105], True),
    ("a slope of more, within the range", [92, 96, 100, 104, 108], False),
    ("falling as steeply", [108, 104, 100, 96, 92], False),
    ("what was before the last five does not count", [900, 500, 100, 101, 99, 100, 100], True),
    ("a spike that has not left the window", [900, 100, 101, 99, 100], False),
]


@pytest.mark.parametrize(("values", "steady"), [row[1:] for row in STEADY], ids=[row[0] for row in STEADY])
def test_a_volume_is_steady_as_snia_has_it(values: list[float], steady: bool | None) -> None:
    found = steadiness(values)
    assert (found and found.steady) is steady


def test_range_and_slope_are_in_percent_of_the_average() -> None:
    found = steadiness([92, 96, 100, 104, 108])
    assert found
    assert [found.range_percent, found.slope_percent] == pytest.approx([16, 16])


FILLINGS = [
    ("an empty volume", (80, 0, 100 * GIB, 1), 80 * GIB),
    ("one that holds a clone already", (80, 30 * GIB, 70 * GIB, 1), 50 * GIB),
    ("one that two share", (80, 20 * GIB, 80 * GIB, 2), 30 * GIB),
    ("whole MiB", (50, 0, 3 << 20, 1), 1 << 20),
]


@pytest.mark.parametrize(("of", "size"), [row[1:] for row in FILLINGS], ids=[row[0] for row in FILLINGS])
def test_the_filling_is_what_lacks_of_the_share(of: tuple[int, int, int, int], size: int) -> None:
    assert filling_bytes(*of) == size


def test_a_volume_that_is_full_and_a_quota_are_told_with_the_key() -> None:
    with pytest.raises(LabError, match=r"precondition.fill_percent: the volume is 80 % full already"):
        check_size(filling_bytes(80, 90 * GIB, 10 * GIB, 1), GIB, 80)
    with pytest.raises(
        LabError, match=r"2048 MiB are to be written and 1024 MiB are free .* raise the quota"
    ):
        check_size(2 * GIB, GIB, 80)


def answer(iops: float = 1000.0, io_bytes: int = 64 << 20, error: int = 0) -> str:
    """What fio 3.33 prints with --output-format=json, as far as it is read."""
    told = {"io_bytes": io_bytes, "bw_bytes": 4096 * iops, "iops": iops, "runtime": 60_001}
    slow = {"percentile": {"50.000000": 100_000, "99.900000": 12_345_678}}
    job = {"jobname": "plimsoll-round", "error": error, "write": told | {"clat_ns": slow}}
    return json.dumps({"fio version": "fio-3.33", "jobs": [job]}, indent=2) + "\n"


def test_what_fio_prints_is_read_also_after_its_notes() -> None:
    wanted = precondition.Written(64 << 20, 60.001, 1000.0, 3.91, 12.346)
    assert precondition.parse_written(answer()) == wanted
    assert precondition.parse_written("fio: this platform does not support {x}\n" + answer()) == wanted


DAMAGED = [
    ("nothing", ""),
    ("cut off", answer()[:100]),
    ("no job", '{\n"jobs": []}'),
    ("two jobs", json.dumps({"jobs": [1, 2]})),
    ("no numbers", answer().replace("60001", '"x"')),
    ("no object", "[]"),
]


@pytest.mark.parametrize("output", [row[1] for row in DAMAGED], ids=[row[0] for row in DAMAGED])
def test_what_is_no_result_of_fio_is_told(output: str) -> None:
    with pytest.raises(LabError, match="cannot parse what fio prints"):
        precondition.parse_written(output)


def test_an_error_within_fio_is_one() -> None:
    with pytest.raises(LabError, match="fio ended with error 28"):
        precondition.parse_written(answer(error=28))


def test_no_path_is_told_to_fio_and_a_round_makes_no_file() -> None:
    words = precondition.overwrite("/a:b", GIB, True, PreconditionSettings())
    assert words[:3] == ["env", "--chdir=/a:b", "fio"]
    assert "--filename=data" in words and "--allow_file_create=0" in words
    assert "--direct=0" in precondition.fill("/a", GIB, False)
