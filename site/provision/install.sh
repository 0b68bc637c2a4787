#!/bin/sh
# Makes a machine (a container image, a VM) one that can take any role of the site: programs, WordPress, our own files.
# The Dockerfile runs the same steps, one a layer.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ "$(id -u)" = 0 ] || { echo "install.sh: run this as root." >&2; exit 2; }
mkdir -p /usr/share/plimsoll
cp -R "$here/../." /usr/share/plimsoll/
"$here/packages"
"$here/cores"
