"""Which tests one worker runs, one after another, where `pytest -n` has several."""

import pytest
from xdist.scheduler import LoadScopeScheduling

# A file's tests are run by one worker, so that its fixtures are made once. These files share one, too:
# they use the same sites, or what a machine has one of (the lab's lock, zfs-fuse). What takes longest begins
# first.
_TOGETHER = {
    "sites": (
        "tests/real/replay/test_members.py",
        "tests/real/scenarios/test_browser_scenario.py",
        "tests/real/scenarios/test_save_article.py",
        "tests/real/scenarios/test_upload_images.py",
        "tests/real/scenarios/test_visitors.py::test_visitors_read_a_wordpress",
        "tests/real/site/test_site.py",
        "tests/real/site/test_site_dump.py",
        "tests/real/site/test_site_faults.py",
    ),
    "disks": (
        "tests/real/lab/test_bench.py",
        "tests/real/lab/test_copy_saturators_real.py",
        "tests/real/lab/test_disks_real.py",
        "tests/real/lab/test_experiment_kills.py",
        "tests/real/lab/test_experiment_tuned.py",
        "tests/real/lab/test_experiment_volumes.py",
        "tests/real/lab/test_fileio_disks.py",
        "tests/real/lab/test_libvirt_clone.py",  # a guest's mount namespace would keep their mounts
        "tests/real/lab/test_pool_work_real.py",
        "tests/real/lab/test_saturators_real.py",
        "tests/real/lab/test_schedule_systemd.py",  # whose mount namespace would keep their mounts
        "tests/real/lab/test_together.py",
        "tests/real/lab/test_clone_datasets.py",  # these last: the sites' worker fills what they copy
        "tests/real/lab/test_compose_clone.py",
    ),
    "experiments": (  # without disks: their lock is their own
        "tests/real/lab/test_experiment.py",
        "tests/real/lab/test_experiment_ssh.py",
    ),
    "installed": (  # both compare two servers, which takes the machine's lock
        "tests/real/install/test_help_examples.py",
        "tests/real/install/test_readme_blocks.py",
    ),
    "machines": ("tests/real/lab/test_qemu_clone.py",),
    "upgrade": ("tests/real/scenarios/test_upgrade_wordpress.py",),
}


def group(node_id: str) -> str:
    """Return the group of a test: one of those above, or its file."""
    for name, beginnings in _TOGETHER.items():
        if node_id.startswith(beginnings):
            return name
    return node_id.partition("::")[0]


def rank(item: pytest.Item) -> tuple[int, int]:
    """Return the place of a test's group in the order in which they begin, and of its file in the group."""
    places = [
        (number, place)
        for number, files in enumerate(_TOGETHER.values())
        for place, file in enumerate(files)
        if item.nodeid.startswith(file)
    ]
    return min(places, default=(len(_TOGETHER), 0))


class Groups(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out groups in the order in which their tests were collected."""

    def __init__(self, config: pytest.Config, log: object) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)
