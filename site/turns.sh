# shellcheck shell=sh
# Builds of images take turns on a machine: pruning would take from under another build what it stands on. The lock is on
# a folder that every user can open, and ends with its holder.
take_turn() {
    command -v flock >/dev/null || return 0
    exec 8</tmp
    flock -n 8 || { say "another build of images is running; waiting for it ..."; flock 8; }
}
end_turn() { exec 8<&-; }
