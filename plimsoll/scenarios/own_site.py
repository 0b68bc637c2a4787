"""Lists the site of `make site` as a clone, with its account: `python -m plimsoll.scenarios.own_site list`.

Run by site/list and site/down, so that the first scenario needs neither exports nor consent.
"""

import argparse
import shlex
import sys
from pathlib import Path

from plimsoll.common.atomic import replace_text
from plimsoll.common.errors import PlimsollError, SettingsError
from plimsoll.scenarios.running.clonelist import (
    DEFAULT,
    Clone,
    being_changed,
    text_of,
    with_entry,
    without_entry,
)

_FOLDER = ".plimsoll"  # beside the list; only its owner may enter


def password_file(name: str) -> Path:
    """Return where the password of the site called `name` lies, from the folder of the list on. Pure."""
    return Path(_FOLDER) / f"{name}.password"


def list_it(config: Path, name: str, target: str, user: str, password: str) -> None:
    """List the site in `config`, in place of what it was listed as before. Raises SettingsError."""
    file = password_file(name)
    entry = Clone(target=target, name=name, user=user, password_file=file)
    with being_changed(config) as replace:
        text = with_entry(_without(text_of(config), file), entry)
        try:
            (config.parent / _FOLDER).mkdir(mode=0o700, exist_ok=True)
            replace_text(config.parent / file, password + "\n", mode=0o600)
        except OSError as error:
            raise SettingsError(f"{config.parent / file}: cannot be written: {error.strerror}") from None
        replace(text)


def unlist(config: Path, name: str) -> None:
    """Take the site out of `config`, and remove its password. Raises SettingsError."""
    file = password_file(name)
    with being_changed(config) as replace:
        before = text_of(config)
        after = _without(before, file)
        if after != before:
            replace(after)
        (config.parent / file).unlink(missing_ok=True)


def next_command(config: Path, target: str, here: Path) -> str:
    """Return the command to try first on the site, for a shell in the folder `here`. Pure."""
    listed = [] if config == here / DEFAULT else ["--site-config", str(config)]
    words = [
        ".venv/bin/plimsoll",
        "scenario",
        "save-article",
        "--target",
        target,
        *listed,
        "--iterations",
        "3",
    ]
    return shlex.join(words)


def _without(text: str, file: Path) -> str:
    return without_entry(text, lambda clone: clone.password_file == file)


def main() -> int:
    """List or unlist. Exit codes: 0 done, 2 it cannot be."""
    parser = argparse.ArgumentParser(prog="python -m plimsoll.scenarios.own_site", description=__doc__)
    parser.add_argument("verb", choices=["list", "unlist"], help="what to do")
    parser.add_argument("--config", type=Path, required=True, help="the list, such as plimsoll.yml")
    parser.add_argument("--name", required=True, help="SITE_NAME")
    parser.add_argument("--target", help="where the site is")
    parser.add_argument("--user", help="its account; the password comes from standard input")
    given = parser.parse_args()
    config = Path.cwd() / given.config
    try:
        if given.verb == "unlist":
            unlist(config, given.name)
            return 0
        list_it(config, given.name, given.target, given.user, sys.stdin.readline().rstrip("\n"))
    except PlimsollError as error:
        print(f"make site: {error}", file=sys.stderr)
        return 2
    print(
        f"make site: {given.target} is listed as a clone in {config}, with its account. Next:",
        file=sys.stderr,
    )
    print(next_command(config, given.target, Path.cwd()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
