"""A host with everything that can be tuned."""

from tests.support.fakemachine import FakeMachine
from tests.support.recorded import ARCSTATS, HUGEPAGE, SCHEDULER

QUEUE = "/sys/block/vda/queue"
PARAMETERS = "/sys/module/zfs/parameters"
PROPERTIES = """\
tank/site\tcompression\tlz4\tinherited from tank
tank/site\trecordsize\t131072\tdefault
tank/site\tatime\toff\tlocal
tank/site\tsync\tstandard\treceived
tank/site\tlogbias\t-\t-
"""


def host_to_tune() -> FakeMachine:
    return FakeMachine(
        {
            f"{QUEUE}/scheduler": SCHEDULER,
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
        {"zfs get": PROPERTIES, "zfs set": "", "zfs inherit": "", "zpool list": "tank\n"},
    )
