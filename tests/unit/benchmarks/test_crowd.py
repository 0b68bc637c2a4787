"""What the guest of benchmarks/crowd says, and what it is made of."""

import pytest

from benchmarks.crowd.__main__ import Crowd, figures, libraries
from benchmarks.measure import RunFailedError

_CONSOLE = """\
guest: 6.1.0, 6079264 KiB, 1000000 open files
now: 366284 KiB, sockets open: 13945
now: 574108 KiB, sockets open: 200003
now: 574112 KiB, sockets open: 180000
seen by nginx: 182940
\tMaximum resident set size (kbytes): 574204
--- summary
{
  "requests": {"sent": 182941, "errors": 1},
  "duration_s": 451.1
}
--- end
"""


def test_figures_are_those_that_the_guest_says() -> None:
    assert figures(_CONSOLE) == {
        "max_rss_mib": 560.7,
        "sent": 182941,
        "errors": 1,
        "seen_by_nginx": 182940,
        "most_sockets": 200003,
        "duration_s": 451.1,
    }


@pytest.mark.parametrize(
    ("why", "console"),
    [
        ("the guest did not start", ""),
        ("it ended in the middle of the summary", _CONSOLE[: _CONSOLE.index("duration")]),
        ("nobody measured the memory", _CONSOLE.replace("Maximum", "Some")),
    ],
)
def test_a_guest_that_did_not_get_to_its_end_has_no_figures(why: str, console: str) -> None:
    with pytest.raises(RunFailedError, match="see its console above"):
        figures(console)


def test_the_libraries_of_a_program() -> None:
    linked = """\
\tlinux-vdso.so.1 (0x00007ffd)
\tlibcrypt.so.1 => /lib/x86_64-linux-gnu/libcrypt.so.1 (0x00007f01)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f02)
"""
    assert libraries(linked) == ["/lib/x86_64-linux-gnu/libcrypt.so.1", "/lib64/ld-linux-x86-64.so.2"]
    assert libraries("\tnot a dynamic executable\n") == []


def test_idle_users_stay_connected() -> None:
    assert "IDLE_S=3600\n" in Crowd(1000, 650, 600, (600, 1800), "127.0.1.0/28").settings()
