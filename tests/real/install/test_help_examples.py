"""Every example of every command's help runs as it stands, in order, in a folder like a fresh clone.

NOT_RUN says of those that do not run why, and what tests them.
"""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.support.examples import BEGUN, NOT_RUN, SERVERS, Clone, examples, write_results

EXAMPLES = examples()
RUN = [one for one in dict.fromkeys(itertools.chain(*EXAMPLES.values())) if one not in NOT_RUN]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    """A clone in which the examples of `origin` serve."""
    here = Clone(tmp_path_factory.mktemp("clone"))
    write_results(here.folder)
    with ExitStack() as serving:
        for example in EXAMPLES["plimsoll origin"]:
            serving.enter_context(here.started(example))
        here.run(f"{EXAMPLES['plimsoll import accesslog'][0]} --out results/imported")
        here.run("plimsoll replay access.log --speed max --out results/replayed --quiet")
        yield here


@pytest.mark.parametrize("example", RUN)
def test_an_example_runs(clone: Clone, example: str) -> None:
    if example in EXAMPLES["plimsoll origin"]:
        assert clone.get(example) == 200
    elif example.startswith(SERVERS):
        with clone.started(example):
            assert clone.get(example) in (200, 303, 401)
    elif example in BEGUN:
        clone.interrupt(example)
    else:
        clone.run(example)


def test_each_command_has_an_example() -> None:
    groups = {name.rpartition(" ")[0] for name in EXAMPLES}
    assert [name for name, found in EXAMPLES.items() if not found and name not in groups] == []


def test_what_does_not_run_is_an_example() -> None:
    known = {one for found in EXAMPLES.values() for one in found}
    assert set(NOT_RUN) - known == set()
