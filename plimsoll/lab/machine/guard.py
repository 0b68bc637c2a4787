"""The few lines of shell that every command runs under, so that nothing outlives its caller."""

from collections.abc import Sequence

# Its input is the line to the caller: a signal's name goes to the command's process group; its end (the
# caller died, the connection broke) ends the group. $1 is the number of bytes that come first, as the
# command's own input: they are kept in a file without a name, since the line must stay free; if they are
# cut short, the command is not started.
# The command is a background job, so it starts with SIGINT ignored: it is ended by TERM.
# Once the command has ended, what is left of its group gets TERM, and KILL after 5 s.
_GUARD = r"""_bytes=$1; shift
exec 3<&0 4</dev/null
if [ -n "$_bytes" ]; then
    _file=$(mktemp) || exit 125
    head -c "$_bytes" <&3 >"$_file"
    exec 4<"$_file"
    _came=$(wc -c <"$_file"); rm -f "$_file"
    [ "$_came" -eq "$_bytes" ] || { echo "its input did not arrive completely" >&2; exit 125; }
fi
setsid "$@" <&4 3<&- 4<&- &
_child=$!
exec 4<&- >/dev/null 2>&1
tell() { kill -s "$1" -- "-$_child" || kill -s "$1" "$_child"; } # it may have no group yet
fade() {
    _tenths=50
    while [ "$_tenths" -gt 0 ] && kill -s 0 -- "-$_child"; do sleep 0.1; _tenths=$((_tenths - 1)); done
    kill -s KILL -- "-$_child"
}
{
    while read -r _signal; do tell "$_signal"; done
    tell TERM
    fade
} <&3 &
_listener=$!
exec 3<&-
wait "$_child"
_status=$?
kill -s TERM -- "-$_child" && fade
kill "$_listener"
exit "$_status"
"""


def guarded(command: Sequence[str], stdin_bytes: int | None, become: bool) -> list[str]:
    """Return `command` under the guard; `stdin_bytes` of input come first, `become` makes it root. Pure."""
    before = ["sudo", "-n", "--"] if become else []
    return [*before, "sh", "-c", _GUARD, "sh", "" if stdin_bytes is None else str(stdin_bytes), *command]
