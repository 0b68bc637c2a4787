"""A host with everything that can be tuned."""

from collections.abc import Sequence

from plimsoll.lab.machine import CommandResult
from plimsoll.lab.tuning import apply
from plimsoll.lab.tuning.apply import JournalPlace
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

PLACE = JournalPlace("plimsoll-lab--a", "experiment lab in /results/lab-1")


class TunedHost(FakeMachine):
    """A FakeMachine that keeps journals of tunings, as its shell would."""

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        check: bool = True,
    ) -> CommandResult:
        if command[:2] != ["sh", "-c"] or command[2] not in vars(apply).values():
            return await super().run(command, stdin=stdin, timeout_s=timeout_s, check=check)
        line, path = tuple(command), command[4]
        self.ran.append(line)
        if self.refuses(line, stdin):
            return CommandResult(line, 1, "", "Read-only file system")
        match command[2]:
            case apply._WRITE if path in self.files:
                return CommandResult(line, 73, "", "")
            case apply._WRITE:
                assert stdin is not None
                self.files[path] = stdin.decode()
            case apply._READ:
                return (
                    CommandResult(line, 0, self.files[path], "")
                    if path in self.files
                    else CommandResult(line, 74, "", "")
                )
            case apply._REMOVE:
                self.files.pop(path, None)
            case apply._LIST:
                names = [one.removeprefix(f"{path}/") for one in self.files if one.startswith(f"{path}/")]
                return CommandResult(line, 0, "".join(f"{name}\n" for name in names) or "*.json\n", "")
        return CommandResult(line, 0, "", "")


def host_to_tune() -> TunedHost:
    return TunedHost(
        {
            f"{QUEUE}/scheduler": SCHEDULER,
            f"{QUEUE}/iosched/fifo_batch": "16\n",
            "/sys/block/vdb/queue/scheduler": "[none] mq-deadline kyber bfq \n",
            "/sys/kernel/mm/transparent_hugepage/defrag": "always defer defer+madvise [madvise] never\n",
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
        {
            "zfs get": PROPERTIES,
            "zfs set": "",
            "zfs inherit": "",
            "zpool list": "tank\n",
            "zfs list -H -o name tank/site": "tank/site\n",
            "test -e /sys/block/vd": "",
        },
    )
