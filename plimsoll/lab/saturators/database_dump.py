"""Saturator `database-dump`: mariadb-dump or mysqldump, again and again, into a file or thrown away."""

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from plimsoll.common.validation import Size
from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.machine import Line, Machine
from plimsoll.lab.names import Folder
from plimsoll.lab.saturators.saturator import (
    CLONE,
    Runner,
    SaturatorKind,
    SaturatorSettings,
    Words,
    aim_folder,
    fill_words,
    has_no_placeholder,
)
from plimsoll.lab.saturators.sinks import (
    REMOVAL_S,
    FileSink,
    FolderSink,
    copied_bytes,
    copy_to_file_command,
    find_left,
    folder_checks,
    own_file,
    removal_command,
)
from plimsoll.lab.steps.step import Check, Remains, is_file, is_program

_SUFFIX = "dump.sql"
_CLIENT = re.compile(r"(.*\b(?:mariadb|mysql))-?dump")  # the client that belongs to it has a shorter name

# $1: the container; then the command. Unlike with docker exec, it ends when it is told to, and writes to whom
# it is for.
_IN_CONTAINER = """pid=$(docker inspect --format '{{.State.Pid}}' "$1") || exit
shift
exec nsenter --target "$pid" --mount --uts --ipc --net -- "$@" """

# $1: the folder of the file, empty for none; $2: how many databases there must be; then the client, which
# prints how many of them it finds, and what their tables hold. A server that is not up yet is no obstacle: it
# may be the clone's. A wrong password is one.
_FITS = """folder=$1 wanted=$2
shift 2
said=$("$@" 2>&1) || {
    case $said in *"ERROR 1045 "*|*"ERROR 1044 "*|*"ERROR 1698 "*)
        printf '%s\n' "$said" | tail -n 1 >&2
        exit 1
    esac
    exit 0
}
set -- $said
[ "$1" -ge "$wanted" ] || {
    echo "it finds $1 of these $wanted databases: SHOW DATABASES names them" >&2
    exit 1
}
[ -n "$folder" ] || exit 0
free=$(df -P -B1 -- "$folder" 2>/dev/null | awk 'NR == 2 { print $4 }')
[ -z "$free" ] || [ "$2" -le "$free" ] || {
    echo "its tables hold $2 bytes, and $folder has $free free: make room, or name another folder" >&2
    exit 1
}"""

DatabaseName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_$][A-Za-z0-9_$-]{0,63}$")]


class DatabaseDump(SaturatorSettings):
    """A dump of databases."""

    kind: Literal["database-dump"] = Field(description="`database-dump`.")
    program: Words = Field(
        ("mariadb-dump",),
        description="Command that dumps: mariadb-dump or mysqldump. Put words before it to run it elsewhere: "
        "[ssh, db, mariadb-dump].",
    )
    container: Annotated[str, Field(pattern=r"^[A-Za-z0-9@][A-Za-z0-9_.@-]*$")] | None = Field(
        None,
        description="Docker container to run it in, by name. `@own-db` is the database of a "
        "`compose` clone, in which root needs no password.",
    )
    defaults_file: Folder | None = Field(
        None,
        description="Option file where it runs, with user and password under [client]. Default: its own, "
        "such as ~/.my.cnf. Nothing secret is ever on a command line.",
    )
    databases: tuple[DatabaseName, ...] = Field((), description="Databases to dump. Default: all.")
    lock_tables: bool = Field(
        False,
        description="Lock the tables, so that the site cannot write meanwhile. If false, all in one "
        "transaction.",
    )
    sink: Annotated[FileSink, Field(discriminator="to")] = Field(
        FolderSink(to="folder"),
        description="Where the dump goes: folder, or null. Default: the disk's folder.",
    )
    rate_bytes_per_s: Annotated[Size, Field(ge=1)] | None = Field(
        None, description="Limit for the dump, in bytes a second. Default: none."
    )


def _with_login(settings: DatabaseDump, program: Sequence[str], label: str = "") -> list[str]:
    """Return how `program` is called where the database is. No secret is in it."""
    inside = ["sh", "-c", _IN_CONTAINER, "sh", settings.container] if settings.container else []
    # Both programs want their option file before anything else.
    login = [f"--defaults-file={settings.defaults_file}"] if settings.defaults_file else []
    words = [*inside, *program]
    return [*(fill_words(words, label) if label else words), *login]


def command(settings: DatabaseDump, label: str) -> list[str]:
    """Return the command that dumps once, and counts what it dumps."""
    what = ["--databases", *settings.databases] if settings.databases else ["--all-databases"]
    how = ["--lock-tables"] if settings.lock_tables else ["--single-transaction"]
    dump = [*_with_login(settings, settings.program, label), *how, "--quick", "--no-tablespaces", *what]
    return copy_to_file_command(dump, own_file(settings.sink, label, _SUFFIX), settings.rate_bytes_per_s)


class _DumpRunner(Runner[DatabaseDump]):
    shortest_round_s = 1.0

    async def _once(self) -> None:
        def read(line: Line) -> int | None:
            return copied_bytes(line.text) if line.stream == "out" else None

        await self._follow(command(self.settings, self.label), read)

    async def _clean(self) -> None:
        if file := own_file(self.settings.sink, self.label, _SUFFIX):
            await self.machine.run(removal_command(file), timeout_s=REMOVAL_S)


def _aim(settings: DatabaseDump, at: DataLocation) -> DatabaseDump:
    sink = settings.sink
    if not isinstance(sink, FolderSink) or sink.folder != CLONE:
        return settings
    return settings.model_copy(update={"sink": FolderSink(to="folder", folder=aim_folder("sink.folder", at))})


def size_query(databases: tuple[str, ...]) -> str:
    """Return the query for how many of these databases there are, and the bytes of their tables. Pure."""
    listed = ", ".join(f"'{name}'" for name in databases)
    schemas, tables = (
        f" WHERE {one} IN ({listed})" if listed else "" for one in ("schema_name", "table_schema")
    )
    return (
        f"SELECT (SELECT COUNT(*) FROM information_schema.schemata{schemas}), "  # noqa: S608 of checked names
        f"(SELECT COALESCE(SUM(data_length), 0) FROM information_schema.tables{tables})"
    )


def _checks(settings: DatabaseDump) -> list[Check]:
    """Return the checks. What is named after the clone can be asked only once that is there."""
    first, found = settings.program[0], folder_checks(settings.sink)
    if settings.container:
        found += [is_program("saturator.container", "docker"), is_program("saturator.container", "nsenter")]
    elif has_no_placeholder(first):
        found.append(is_program("saturator.program", first))
        if settings.defaults_file and len(settings.program) == 1:
            found.append(is_file("saturator.defaults_file", settings.defaults_file))
    client = _CLIENT.fullmatch(settings.program[-1])
    if client and all(map(has_no_placeholder, [*settings.program, settings.container or ""])):
        folder = settings.sink.folder if isinstance(settings.sink, FolderSink) else ""
        asked = f"--execute={size_query(settings.databases)}"
        query = ["--batch", "--skip-column-names", "--connect-timeout=5", asked]
        ask = [*_with_login(settings, [*settings.program[:-1], client[1]]), *query]
        words = ("sh", "-c", _FITS, "sh", folder, str(len(settings.databases)), *ask)
        found.append(Check("saturator: the databases cannot be dumped", words))
    return found


async def _find(machine: Machine, settings: DatabaseDump, label: str, backend: str) -> list[Remains]:
    """Return the file that it writes."""
    file = own_file(settings.sink, label, _SUFFIX)
    return await find_left(machine, file, backend) if file else []


DATABASE_DUMP = SaturatorKind(
    "database-dump",
    DatabaseDump,
    _DumpRunner,
    aim=_aim,
    programs=frozenset({"python3"}),
    rounds=lambda _: 1,
    checks=_checks,
    find=_find,
)
