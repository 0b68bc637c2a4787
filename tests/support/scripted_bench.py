"""A ScriptedMachine with a volume that `plimsoll fileio` measures."""

from collections.abc import Callable, Sequence

from tests.support.scripted_machine import ScriptedMachine

Answer = tuple[int, str, str]  # status, output, errors


def bench_machine(
    measured: Callable[[list[str]], Answer], *, folder_exists: bool = False, free: int = 1 << 30
) -> ScriptedMachine:
    """A machine with `free` bytes, on which the program that measures gives the answer of `measured`."""

    def answer(command: Sequence[str]) -> Answer:
        words = list(command)
        if words[0] == "mkdir":
            return (1, "", "File exists") if folder_exists else (0, "", "")
        if words[0] == "find":
            return 0, words[1] + "\n" if folder_exists else "", ""
        if words[0] == "df":
            return 0, f"Avail\n{free}\n", ""
        return measured(words)

    return ScriptedMachine(answer)
