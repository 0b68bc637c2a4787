"""A form with a file, sent as it is read: no photograph is held in memory whole."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4


class Multipart:
    """The body of a `multipart/form-data` request: `fields`, then the file."""

    def __init__(self, fields: Mapping[str, str], name: str, path: Path, file_name: str, kind: str) -> None:
        """Open the file, sent in field `name` as `file_name` of media type `kind`. Raises OSError."""
        mark = uuid4().hex
        head = "".join(
            f'--{mark}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'
            for key, value in fields.items()
        )
        head += (
            f'--{mark}\r\nContent-Disposition: form-data; name="{name}"; filename="{file_name}"\r\n'
            f"Content-Type: {kind}\r\n\r\n"
        )
        self.content_type = f"multipart/form-data; boundary={mark}"
        self._head, self._tail = head.encode(), f"\r\n--{mark}--\r\n".encode()
        self._file = path.open("rb")
        self._length = len(self._head) + os.fstat(self._file.fileno()).st_size + len(self._tail)

    def __len__(self) -> int:
        return self._length

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` further bytes; none at the end."""
        if self._head:
            piece, self._head = self._cut(self._head, size)
            return piece
        if piece := self._file.read(size):
            return piece
        piece, self._tail = self._cut(self._tail, size)
        return piece

    @staticmethod
    def _cut(whole: bytes, size: int) -> tuple[bytes, bytes]:
        return (whole, b"") if size < 0 else (whole[:size], whole[size:])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
