"""The check of the locks: each way in which a lock fails the lowest Python or pyproject.toml."""

import pytest

from tools.locks import Dist, lowest, problems


def a_lock(*pins: str) -> str:
    """Return the text of a lock with these pins, as uv writes it."""
    return "".join(f"{pin} \\\n    --hash=sha256:{'0' * 64}\n    # via plimsoll\n" for pin in pins)


SOUP = Dist("4.1.1", ">=3.11.5")

CASES = [
    ("all is well", ["rich>=13"], a_lock("rich==15.0"), {"rich": Dist("15.0", ">=3.8")}, "3.11.0", []),
    (
        "a package too new for the lowest Python (Debian 12 has 3.11.2)",
        ["beautifulsoup4>=4"],
        a_lock("beautifulsoup4==4.15.0", "soupsieve==4.1.1"),
        {"beautifulsoup4": Dist("4.15.0", ">=3.7", ["soupsieve>=1.6"]), "soupsieve": SOUP},
        "3.11.0",
        ["soupsieve==4.1.1 needs Python >=3.11.5, and 3.11.0 is promised"],
    ),
    (
        "the same under a newer Python",
        ["soupsieve"],
        a_lock("soupsieve==4.1.1"),
        {"soupsieve": SOUP},
        "3.11.7",
        [],
    ),
    (
        "a version for each Python, by markers",
        ["soupsieve"],
        a_lock(
            "soupsieve==2.10 ; python_full_version < '3.11.5'",
            "soupsieve==4.1.1 ; python_full_version >= '3.11.5'",
        ),
        {"soupsieve": SOUP},
        "3.11.0",
        [],
    ),
    (
        "what pyproject.toml asks for has changed",
        ["click>=9"],
        a_lock("click==8.5.1"),
        {"click": Dist("8.5.1")},
        "3.11.0",
        ["pyproject.toml needs click>=9, but 8.5.1 is locked"],
    ),
    (
        "a new dependency was not locked",
        ["Import_Linter>=2"],
        a_lock("click==8.5.1"),
        {},
        "3.11.0",
        ["pyproject.toml needs Import_Linter under Python 3.11.0, which is not locked"],
    ),
    (
        "a dependency that only the lowest Python needs, which a lock made by a newer one lacks",
        ["redis"],
        a_lock("redis==5.0"),
        {"redis": Dist("5.0", ">=3.7", ["async-timeout>=4; python_full_version < '3.11.3'"])},
        "3.11.0",
        ["redis needs async-timeout under Python 3.11.0, which is not locked"],
    ),
    (
        "a dependency of an extra",
        ["requests[socks]"],
        a_lock("requests==2.34"),
        {"requests": Dist("2.34", ">=3.9", ["PySocks>=1.5; extra == 'socks'"])},
        "3.11.0",
        ["requests needs PySocks under Python 3.11.0, which is not locked"],
    ),
    (
        "the extra that nobody asks for",
        ["requests"],
        a_lock("requests==2.34"),
        {"requests": Dist("2.34", ">=3.9", ["PySocks>=1.5; extra == 'socks'"])},
        "3.11.0",
        [],
    ),
]


@pytest.mark.parametrize(
    ("case", "wanted", "lock", "installed", "python", "found"), CASES, ids=[c[0] for c in CASES]
)
def test_the_locks_are_checked(
    case: str, wanted: list[str], lock: str, installed: dict[str, Dist], python: str, found: list[str]
) -> None:
    """Every problem is a sentence; what fits has none."""
    assert list(problems(wanted, lock, installed, python)) == found


def test_the_lowest_python_is_read_from_the_bound() -> None:
    """A bound of two numbers means the first release of that series."""
    assert (lowest(">=3.11"), lowest(">= 3.11.2")) == ("3.11.0", "3.11.2")
    with pytest.raises(ValueError, match="write a plain lower bound"):
        lowest(">=3.11,<4")
