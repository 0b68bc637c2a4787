"""A program by itself: reads a PDF on standard input, and prints whether each of its pages has a word."""

import io
import resource
import sys

from pypdf import PdfReader

_MEMORY_BYTES = 1 << 30


def each_page_has(pdf: bytes, word: str) -> bool:
    """Return whether each page has `word`, of which the parts may stand apart. Raises whatever pypdf does."""
    pages = PdfReader(io.BytesIO(pdf)).pages
    return bool(pages) and all(word in "".join(page.extract_text().split()) for page in pages)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    print(each_page_has(sys.stdin.buffer.read(), sys.argv[1]))
