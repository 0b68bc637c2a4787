"""Bytes in pieces become lines. A carriage return ends one too: programs tell their progress that way."""

import re

_END = re.compile(rb"\r?\n|\r(?=[^\n])")  # at the end of a piece, a carriage return waits for what follows
_LONGEST_BYTES = 1 << 16  # an endless line must not fill the memory: longer lines come in pieces


def text_of(data: bytes) -> str:
    r"""Return `data` as text; what is no UTF-8 is spelled out (`\xff`)."""
    return data.decode("utf-8", "backslashreplace")


class LineSplit:
    """Takes pieces of bytes, and gives the lines that they complete.

    What stands behind a carriage return, or before one that ends a piece, is given at once: a program writes
    the end of that line only with its next one. If more of it comes, it is given again, whole.
    """

    def __init__(self) -> None:
        self._rest = self._given = b""
        self._is_progress = False  # the rest stands behind a carriage return

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that `data` completes, without their ends."""
        data, at, lines = self._rest + data, 0, list[bytes]()
        for end in _END.finditer(data):
            lines.append(data[at : end.start()])
            at, self._is_progress = end.end(), end[0] == b"\r"
        self._rest = data[at:]
        if lines:
            lines = lines[bool(self._given and lines[0] == self._given) :]
            self._given = b""
        while len(self._rest) > _LONGEST_BYTES:
            lines.append(self._rest[:_LONGEST_BYTES])
            self._rest = self._rest[_LONGEST_BYTES:]
        begun = self._rest.removesuffix(b"\r")
        if begun and begun != self._given and (self._is_progress or begun != self._rest):
            lines.append(begun)
            self._given = begun
        return [text_of(line) for line in lines]

    def end(self) -> list[str]:
        """Return the last line where it had no end."""
        rest, self._rest = self._rest.removesuffix(b"\r"), b""
        return [text_of(rest)] if rest and rest != self._given else []
