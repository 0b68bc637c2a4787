"""A mount is copied into each mount namespace that is made meanwhile: a virtual machine's, a service's.

Where the root of the file systems is not shared, such a copy outlives the mount, and keeps the disk.
"""

# $1: the mount point. Unmounts the copies of it, and of what is mounted below it, in other namespaces.
UNMOUNT_COPIES = r"""here=$(readlink /proc/self/ns/mnt)
for info in $(grep -ls -e " $1 " -e " $1/" /proc/[0-9]*/mountinfo); do
    pid=${info%/*} pid=${pid##*/}
    [ "$(readlink "/proc/$pid/ns/mnt")" != "$here" ] || continue
    awk -v at="$1" '$5 == at || index($5, at "/") == 1 { print $5 }' "$info" 2>/dev/null | sort -r |
        while read -r copy; do nsenter -t "$pid" -m -- umount -l -- "$copy" || :; done
done"""
