"""Run a command on the files that a variable of make names: paths.py NAMES COMMAND..."""

import os
import shlex
import sys
from glob import glob


def paths(names: str) -> list[str]:
    """Return the paths that a text names, by its whole or else by its words; nothing in it is executed.

    A file or folder of exactly this name is one, blanks, quotes and all; then the whole may be a pattern.
    Otherwise it is words as in a shell: quotes and backslashes hold blanks together, `~` and patterns expand.
    """
    if found := matches(names.strip()):
        return found
    try:
        words = shlex.split(names)
    except ValueError:  # a lone quote is part of a name
        words = names.split()
    return [path for word in words for path in matches(word) or [word]]


def matches(name: str) -> list[str]:
    """Return the name where it is there, or else what is there and fits it as a pattern, sorted."""
    # Not Path, which takes the `./` off a name that begins with `-`.
    name = os.path.expanduser(name)  # noqa: PTH111
    return [name] if os.path.lexists(name) else sorted(glob(name))  # noqa: PTH207


if __name__ == "__main__":
    os.execvp(sys.argv[2], [*sys.argv[2:], *paths(sys.argv[1])])  # noqa: S606
