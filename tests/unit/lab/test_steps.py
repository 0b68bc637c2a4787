"""Steps: what is shown is what is done; names with the label."""

import asyncio
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.lab.errors import LabError, MachineError
from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.names import Label, checked_label, is_own_snapshot, snapshot_name
from plimsoll.lab.steps.runner import StepRunner
from plimsoll.lab.steps.step import Call, Command, Room, Serve, Step, as_shell, fill_step, no_reference


@pytest.mark.parametrize(
    ("what", "step", "line"),
    [
        ("a command is a line for a shell", Command("", ("ls", "-l", "/a b")), "ls -l '/a b'"),
        (
            "what it captures is a variable",
            Command("", ("losetup", "-f"), capture="loop"),
            "loop=$(losetup -f)",
        ),
        ("a reference stays one", Command("", ("mkfs", "${loop}")), 'mkfs "${loop}"'),
        ("also within a word", Command("", ("dd", "of=${loop}p1")), "dd of=${loop}p1"),
        (
            "its input comes by a pipe",
            Command("", ("tee", "/p"), stdin="8:0 1"),
            "printf %s '8:0 1' | tee /p",
        ),
        (
            "a call is its method, path and parameters",
            Call("", "POST", "/nodes/a/qemu/1/clone", (("name", "x y"), ("full", "1")), capture="task"),
            "task = POST /nodes/a/qemu/1/clone name='x y' full=1",
        ),
        (
            "a site is asked",
            Serve("", "http://a/", timeout_s=9),
            "GET http://a/ until it is answered, 9 s at most",
        ),
        ("room is for what there is already", Room("", "/a", like="/b"), "room in /a for what /b takes"),
    ],
)
def test_a_step_is_shown_as_it_is_done(what: str, step: Step, line: str) -> None:
    assert as_shell(step) == line


def test_a_shown_command_does_in_a_shell_what_it_does_here() -> None:
    awkward = ("printf", "[%s]", "a b", "$HOME", "`id`", "'", '"', "; rm -rf /", "*", "")
    expected = subprocess.run(awkward, capture_output=True, text=True, check=True).stdout
    pasted = subprocess.run(
        ["/bin/sh", "-c", as_shell(Command("", awkward))], capture_output=True, text=True, check=True
    )
    assert pasted.stdout == expected


@pytest.mark.parametrize(
    ("what", "step", "expected"),
    [
        ("one line by printf", Command("", ("cat",), stdin="a b"), "a b"),
        ("a line with its end by echo", Command("", ("cat",), stdin="a b\n"), "a b\n"),
        ("several lines as a heredoc", Command("", ("cat",), stdin="a\n$HOME\n"), "a\n$HOME\n"),
        ("it may fail", Command("", ("false",), stdin="a\nb\n", may_fail=True), ""),
        (
            "words of several lines may fail",
            Command("", ("sh", "-c", "echo a\nexit 1", "sh"), may_fail=True),
            "a\n",
        ),
        (
            "words of several lines, their input too",
            Command("", ("sh", "-c", "cat\nexit 1", "sh"), stdin="a\nb\n", may_fail=True),
            "a\nb\n",
        ),
    ],
)
def test_a_shown_command_with_its_input_does_the_same_in_a_shell(
    what: str, step: Command, expected: str
) -> None:
    pasted = subprocess.run(["/bin/sh", "-c", as_shell(step)], capture_output=True, text=True)
    assert (pasted.returncode, pasted.stdout) == (0, expected), what


def test_references_become_what_was_captured() -> None:
    step = fill_step(
        Command("", ("zpool", "create", "p", "${loop}"), stdin="${loop} 1"), {"loop": "/dev/loop3"}
    )
    assert isinstance(step, Command)
    assert (step.words[-1], step.stdin) == ("/dev/loop3", "/dev/loop3 1")
    with pytest.raises(KeyError):
        fill_step(Command("", ("a", "${nowhere}")), {})


def test_text_of_a_user_is_never_a_reference() -> None:
    with pytest.raises(ValueError, match="must not contain"):
        no_reference("${loop}")


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("hyphens part our names from others'", "a--b"),
        ("capitals are not in names of machines", "Nvme"),
        ("a space", "a b"),
        ("a quote", "a'b"),
        ("a semicolon", "a;b"),
        ("a path", "../a"),
        ("an at sign would make a snapshot of it", "a@b"),
        ("a slash would make a dataset of it", "a/b"),
        ("nothing", ""),
        ("a line feed", "a\n"),
        ("too long", "a" * 17),
        ("a hyphen at its end", "a-"),
    ],
)
def test_a_name_that_could_be_more_than_a_name_is_refused(what: str, name: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        Label(name)
    with pytest.raises(ValueError, match="must be"):
        Label("lab").of(name)


def test_only_names_of_this_very_experiment_are_its_own() -> None:
    label = Label("a")
    assert label.backend(label.of("b-c")) == "b-c"
    for other in (
        "plimsoll-a-b--c",
        "plimsoll-a",
        "plimsoll-a--b--c",
        "plimsoll-b--a",
        "xplimsoll-a--b",
        "plimsoll-a--b/x",
    ):
        assert label.backend(other) is None


@given(st.from_regex(r"[a-z0-9][a-z0-9-]{0,39}", fullmatch=True), st.integers(1, 999_999), st.text())
def test_a_snapshot_s_name_belongs_to_one_label(label: str, number: int, other: str) -> None:
    name = snapshot_name(label, number)
    assert is_own_snapshot(name, label)
    try:
        checked_label(other)
    except ValueError:
        return
    assert is_own_snapshot(name, other) == (other == label)


def _do(*steps: Step) -> StepRunner:
    runner = StepRunner(LocalMachine())
    asyncio.run(runner.do(steps))
    return runner


def test_what_a_command_says_is_captured_for_those_after_it() -> None:
    runner = _do(
        Command("", ("echo", " /dev/loop7 "), capture="loop"),
        Command("", ("echo", "on ${loop}"), capture="said"),
    )
    assert runner.captured == {"loop": "/dev/loop7", "said": "on /dev/loop7"}


def test_a_step_whose_reference_is_not_known_yet_fails_as_any_other() -> None:
    """What was made is removed after Ctrl-C too, when not all of it was."""
    with pytest.raises(LabError, match="lift the limits: disk_group is not known yet"):
        asyncio.run(
            StepRunner(LocalMachine("here")).do([Command("lift the limits", ("true", "${disk_group}"))])
        )


def test_a_command_may_be_tried_until_it_succeeds(tmp_path: pytest.TempPathFactory) -> None:
    script = 'test -e "$1" || { touch "$1"; exit 1; }'
    _do(Command("", ("sh", "-c", script, "sh", f"{tmp_path}/there"), until_s=30))
    with pytest.raises(MachineError):
        _do(Command("", ("false",)))
    _do(Command("", ("false",), may_fail=True))


def test_room_that_is_not_there_is_named() -> None:
    _do(Room("", "/"))
    with pytest.raises(LabError, match="make room, or choose another folder"):
        _do(Room("", "/", bytes=1 << 60))


def test_a_script_that_fails_is_reported_in_one_line_by_what_it_was_for() -> None:
    script = "for each in one two; do\n    echo $each >&2\ndone\nexit 4"
    with pytest.raises(MachineError) as caught:
        _do(Command("remove the folder", ("sh", "-c", script, "sh", "/srv/a")))
    assert str(caught.value) == "local: remove the folder: ended with status 4: two"
    with pytest.raises(MachineError) as caught:
        _do(Command("mount it", ("false", "/srv/a")))
    assert str(caught.value) == "local: mount it: false /srv/a: ended with status 1"


def test_a_script_that_no_step_explains_is_not_poured_over_the_terminal() -> None:
    with pytest.raises(MachineError) as caught:
        asyncio.run(LocalMachine("here").run(["sh", "-c", "echo no >&2\nexit 4", "sh", "/srv/a b"]))
    assert str(caught.value) == "here: sh -c … sh '/srv/a b': ended with status 4: no"
