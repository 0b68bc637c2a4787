# shellcheck shell=sh
# Debian's own archive, signatures checked; sourced.

# Makes a minimal root of the suite in a folder: debian SUITE FOLDER [mmdebstrap's options].
debian() {
    debian_suite=$1 debian_root=$2
    shift 2
    mmdebstrap --quiet --variant=minbase --mode=root --keyring=/usr/share/keyrings/debian-archive-keyring.gpg \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' "$@" "$debian_suite" "$debian_root" \
        "deb http://deb.debian.org/debian $debian_suite main contrib" \
        "deb http://deb.debian.org/debian $debian_suite-updates main contrib" \
        "deb http://deb.debian.org/debian-security $debian_suite-security main contrib"
}
