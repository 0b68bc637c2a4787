"""Bytes in pieces become lines."""

_LONGEST_BYTES = 1 << 16  # an endless line must not fill the memory: longer lines come in pieces


def text_of(data: bytes) -> str:
    r"""Return `data` as text; what is no UTF-8 is spelled out (`\xff`)."""
    return data.decode("utf-8", "backslashreplace")


class LineSplit:
    """Takes pieces of bytes, and gives the lines that they complete."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that `data` completes, without their ends."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        while len(self._rest) > _LONGEST_BYTES:
            whole.append(self._rest[:_LONGEST_BYTES])
            self._rest = self._rest[_LONGEST_BYTES:]
        return [text_of(line.removesuffix(b"\r")) for line in whole]

    def end(self) -> list[str]:
        """Return the last line where it had no end."""
        rest, self._rest = self._rest, b""
        return [text_of(rest)] if rest else []
