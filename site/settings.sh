# shellcheck shell=sh
# Sourced by the other scripts here, which set $project: the settings with their defaults, and functions that several
# of them use. Empty means unset, since make passes every setting on.

say() { echo "make site: $*" >&2; }
refuse() { say "$*"; exit 2; } # a setting is wrong, or this machine unfit
fail() { say "$*"; exit 1; }

MARK=.plimsoll-site # in the folder as soon as any file of the site is; holds name=, made_folder=
SITE_IMAGE=plimsoll-site

BACKEND_DIR=${BACKEND_DIR:-$project/site-data}
case $BACKEND_DIR in /*) ;; *) BACKEND_DIR=$PWD/$BACKEND_DIR ;; esac
BACKEND_DIR=$(realpath -m -- "$BACKEND_DIR")
case $BACKEND_DIR in
/ | *[:\"\$\`\\]*) refuse "BACKEND_DIR=$BACKEND_DIR cannot be mounted by Docker: choose a folder without : \" \$ \` and \\." ;;
esac

marked() { # KEY: its value in the folder's mark
    sed -n "s/^$1=//p" "$BACKEND_DIR/$MARK" 2>/dev/null || true
}

SITE_NAME=${SITE_NAME:-plimsoll}
SITE_PORT=${SITE_PORT:-8080}
SITE_BIND=${SITE_BIND:-127.0.0.1}
SITE_EDITOR=${SITE_EDITOR:-block}
SITE_SIZE=${SITE_SIZE:-small}
SITE_SEED=${SITE_SEED:-1}
WP_UPGRADE_ZIP=${WP_UPGRADE_ZIP:-}
SITE_LARGE_GIB=${SITE_LARGE_GIB:-}
SITE_WAIT_S=${SITE_WAIT_S:-300}
DB_BUFFER_POOL=${DB_BUFFER_POOL:-256M}
PHP_CHILDREN=${PHP_CHILDREN:-8}
VARNISH_STORAGE=${VARNISH_STORAGE:-128M}
SITE_CONFIG=${SITE_CONFIG:-$project/plimsoll.yml}
export BACKEND_DIR SITE_NAME SITE_PORT SITE_BIND SITE_EDITOR DB_BUFFER_POOL PHP_CHILDREN VARNISH_STORAGE

# True if the folder is a site that make site made, whole or in part.
ours() {
    [ -f "$BACKEND_DIR/$MARK" ] || grep -qs '"offered"' "$BACKEND_DIR/site.json"
}

# Where visitors of this machine reach the site: an address that means all others is that of none.
site_url() {
    case $SITE_BIND in
    0.0.0.0) echo "http://127.0.0.1:$SITE_PORT" ;;
    ::) echo "http://[::1]:$SITE_PORT" ;;
    *:*) echo "http://[$SITE_BIND]:$SITE_PORT" ;;
    *) echo "http://$SITE_BIND:$SITE_PORT" ;;
    esac
}

need_docker() { "$project/site/needs" || exit 2; }

compose() { "$project/site/compose" "$@"; }

# Runs a command as root on the folder, in a container, since its files belong to the site's own users.
in_folder() {
    program=$1
    shift
    docker run --rm --network none --entrypoint "$program" -v "$BACKEND_DIR:/data" "$SITE_IMAGE" "$@"
}

# shellcheck source=/dev/null
. "$project/site/turns.sh"
