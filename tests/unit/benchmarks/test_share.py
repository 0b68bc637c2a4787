"""Who replays whom is the same here and in Go, and every client has exactly one instance."""

import base64
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.sharing.share import client_of, even_bounds, owners, place
from tests.support.programs import ROOT

TABLE = ROOT / "replay" / "traffic" / "testdata" / "shares.json"
CLIENTS: list[dict[str, Any]] = json.loads(TABLE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", CLIENTS, ids=lambda row: str(row["client"]))
def test_clients_are_numbered_and_shared_as_the_table_of_the_replay_has_it(row: dict[str, Any]) -> None:
    address, agent = base64.b64decode(row["address_base64"]), base64.b64decode(row["user_agent_base64"])
    assert client_of(address, agent) == row["client"]
    assert row["owners"]
    for sequence, owner in row["owners"].items():
        bounds = [Fraction(bound) for bound in sequence.split(",")]
        assert owners(np.array([row["client"]], dtype=np.uint32), bounds).tolist() == [owner]


def test_the_table_has_a_client_for_each_of_four_instances() -> None:
    assert {row["owners"]["0,1/4,1/2,3/4,1"] for row in CLIENTS} == {0, 1, 2, 3}


numbers = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=50)


@given(numbers, st.integers(1, 100))
def test_shares_are_a_partition(clients: list[int], instances: int) -> None:
    owner = owners(np.array(clients, dtype=np.uint32), even_bounds(instances))
    assert ((owner >= 0) & (owner < instances)).all()
    by_client: dict[int, set[int]] = {}
    for client, instance in zip(clients, owner, strict=True):
        by_client.setdefault(client, set()).add(int(instance))
    assert all(len(instances_of) == 1 for instances_of in by_client.values())


@given(st.lists(st.integers(0, 2**32 - 1), unique=True, max_size=50))
def test_no_two_clients_have_the_same_place(clients: list[int]) -> None:
    assert len(np.unique(place(np.array(clients, dtype=np.uint32)))) == len(clients)


@given(numbers, st.integers(1, 20))
def test_twice_as_many_instances_cut_each_share_in_two(clients: list[int], instances: int) -> None:
    array = np.array(clients, dtype=np.uint32)
    fewer, more = owners(array, even_bounds(instances)), owners(array, even_bounds(2 * instances))
    assert (more // 2 == fewer).all()
