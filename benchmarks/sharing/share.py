"""The instance that replays a client: the function of `replay/traffic/clients.go`, which decides it.

Both are held to the same table of clients, `replay/traffic/testdata/shares.json`.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Clients = NDArray[np.uint32]

_MASK = 0xFFFF_FFFF
_FNV_OFFSET, _FNV_PRIME = 0x811C_9DC5, 0x0100_0193


def client_of(address: bytes, user_agent: bytes) -> int:
    """Return the number of a client: FNV-1a (32 bits) of its address, a 0 and its user agent."""
    number = _FNV_OFFSET
    for byte in (*address, 0, *user_agent):
        number = (number ^ byte) * _FNV_PRIME & _MASK
    return number


def place(clients: Clients) -> Clients:
    """Return each client's position in [0, 1), in units of 2⁻³²: the finalizer of MurmurHash3 (Appleby).

    One to one, so that no two clients come to stand in one place.
    """
    h = clients.astype(np.uint32)
    h ^= h >> np.uint32(16)
    h *= np.uint32(0x85EB_CA6B)
    h ^= h >> np.uint32(13)
    h *= np.uint32(0xC2B2_AE35)
    return h ^ h >> np.uint32(16)


def even_bounds(instances: int) -> list[Fraction]:
    """Return the bounds of `instances` parts of the same width, from 0 to 1, as k6's operator sets them."""
    return [Fraction(i, instances) for i in range(instances + 1)]


def owners(clients: Clients, bounds: Sequence[Fraction]) -> NDArray[np.int64]:
    """Return the index, from 0, of the instance that replays each client; shape as `clients`.

    `bounds` ascend from 0 to 1, one more than there are instances.
    """
    edges = np.array([int(bound * (1 << 32)) for bound in bounds], dtype=np.uint64)
    return np.searchsorted(edges, place(clients).astype(np.uint64), side="right") - 1
