"""What OpenZFS prints, in the form of its source (module/zfs/spa_stats.c, zil.c, cmd/zpool/zpool_main.c)."""

from collections.abc import Mapping, Sequence

KINDS = 11  # columns of `zpool iostat -w` after the bound of a bucket, since OpenZFS 2.2; 10 before
BUCKETS = 37


def kstat(now_ns: int, **counters: int) -> str:
    """A kstat of named counters that was read at `now_ns`."""
    lines = [f"12 1 0x01 {len(counters)} {len(counters) * 272} 4000000000 {now_ns}"]
    lines.append(f"{'name':<31} {'type':<4} data")
    return "\n".join([*lines, *(f"{name:<31} {4:<4} {value}" for name, value in counters.items()), ""])


TXGS_HEAD = (
    "txg      birth            state ndirty       nread        nwritten     reads    writes   otime        "
    "qtime        wtime        stime       \n"
)


def txg(
    number: int, state: str, birth: int, dirty: int = 0, written: int = 0, times: Sequence[int] = (0, 0, 0, 0)
) -> str:
    """A line of `txgs`; `times` are otime, qtime, wtime and stime."""
    otime, qtime, wtime, stime = times
    return (
        f"{number:<8} {birth:<16} {state:<5} {dirty:<12} {0:<12} {written:<12} {0:<8} {0:<8} "
        f"{otime:<12} {qtime:<12} {wtime:<12} {stime:<12}\n"
    )


def histograms(pool: str, counts: Mapping[tuple[int, int], int], kinds: int = KINDS) -> list[str]:
    """The lines of `zpool iostat -w -H -p` for one pool; `counts` by (bucket, column), all else 0."""
    rows = [
        "\t".join(
            [str((1 << bucket + 1) - 1), *(str(counts.get((bucket, kind), 0)) for kind in range(kinds))]
        )
        for bucket in range(BUCKETS)
    ]
    return ["", pool, *rows]


def vdev_line(name: str, read_wait: str = "-", write_wait: str = "-", ops: int = 10) -> str:
    """A line of `zpool iostat -v -H -p -l`; both waits are of the disk, in ns."""
    waits = [read_wait, write_wait, read_wait, write_wait, "-", "-", "-", "-", "-", "-", "-"]
    return "\t".join([name, "-", "-", str(ops), str(ops), "40960", "40960", *waits])
