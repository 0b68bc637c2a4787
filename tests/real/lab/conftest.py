"""The machine with OpenZFS that the tests of this folder share, and experiments that exclude no others."""

from collections.abc import Iterator

import pytest

from tests.support.guests import ZfsVm, start_zfs_vm, stop_zfs_vm
from tests.support.labs import apart as apart
from tests.support.programs import REPLAY, need


@pytest.fixture(scope="session")
def vm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZfsVm]:
    need(REPLAY)
    machine = start_zfs_vm(tmp_path_factory.mktemp("zfs-vm"))
    yield machine
    stop_zfs_vm(machine)
