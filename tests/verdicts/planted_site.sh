#!/bin/sh
# The site of tests/verdicts/planted.py in the folder $W, on the port $HTTP: planted_site.sh disks | site | pool WORKERS.
set -eu
PATH=$PATH:/usr/sbin:/sbin

# A pool and an ext4 on the two slow disks of the virtual machine. The limits of dirty pages are small: an emulated
# processor has to fill them faster than the disk empties them.
disks() {
    mkdir -p "$W/up"
    zpool create -f -o cachefile=none -O mountpoint=none -O compression=off -O atime=off tank /dev/disk/by-id/virtio-one
    zfs create -o mountpoint="$W/f" -o primarycache=metadata tank/site
    zfs create -o mountpoint="$W/noise" tank/noise
    head -c 150M /dev/zero >"$W/noise/burst"
    mkfs.ext4 -q -F /dev/disk/by-id/virtio-two
    mount /dev/disk/by-id/virtio-two "$W/up"
    sysctl -q vm.dirty_background_bytes=16777216 vm.dirty_bytes=67108864
}

# Files, and a page of PHP that raises a counter in MariaDB and writes a file.
site() {
    mkdir -p "$W/f" "$W/up" "$W/www"
    for i in $(seq "$FILES"); do head -c "$FILE_BYTES" /dev/urandom >"$W/f/$i.bin"; done
    ln -s "$W/f" "$W/www/f"
    echo 'the site' >"$W/www/index.html"
    cat >"$W/www/page.php" <<PHP
<?php
\$db = new mysqli('localhost', 'root', '', 'site', 0, '$W/db.sock');
\$db->query('UPDATE counters SET hits = hits + 1 WHERE id = 1');
file_put_contents('$W/up/' . (\$_GET['n'] ?? 0) % 50, str_repeat('x', 786432));
echo 'ok';
PHP
    # shellcheck disable=SC2016
    echo '<?php sleep((int) $_GET["s"]); echo "ok";' >"$W/www/slow.php"

    mariadb-install-db --no-defaults --user=root --datadir="$W/db" --auth-root-authentication-method=normal >/dev/null
    printf '[client]\nuser=root\nsocket=%s/db.sock\n' "$W" >"$W/client.cnf"
    chmod 600 "$W/client.cnf"
    setsid mariadbd --no-defaults --user=root --datadir="$W/db" --socket="$W/db.sock" --pid-file="$W/db.pid" \
        --skip-networking </dev/null >"$W/db.log" 2>&1 &
    until mariadb-admin --defaults-file="$W/client.cnf" ping >/dev/null 2>&1; do sleep 1; done
    mariadb --defaults-file="$W/client.cnf" -e 'CREATE DATABASE site; USE site;
        CREATE TABLE counters (id INT PRIMARY KEY, hits INT) ENGINE=InnoDB; INSERT INTO counters VALUES (1, 0)'

    cat >"$W/nginx.conf" <<NGINX
user root; pid $W/nginx.pid; error_log $W/nginx.log;
events {}
http {
  access_log off; sendfile off;
  server {
    listen $HTTP; root $W/www;
    location ~ \.php\$ {
      include /etc/nginx/fastcgi_params; fastcgi_read_timeout 120s; fastcgi_pass unix:$W/php.sock;
      fastcgi_param SCRIPT_FILENAME \$document_root\$fastcgi_script_name;
    }
  }
}
NGINX
    nginx -c "$W/nginx.conf" </dev/null >/dev/null 2>&1
    sync
}

# PHP anew, with so many workers. It is asked for its state beside the pool.
pool() {
    [ ! -e "$W/fpm.pid" ] || { kill "$(cat "$W/fpm.pid")" && sleep 2; }
    cat >"$W/fpm.conf" <<FPM
[global]
pid = $W/fpm.pid
error_log = $W/fpm.log
[www]
listen = $W/php.sock
listen.backlog = 512
user = root
group = root
pm = static
pm.max_children = $1
pm.status_path = /status
pm.status_listen = $W/status.sock
FPM
    php=$(find /usr/sbin -name 'php-fpm*' | head -n 1)
    "$php" -R -y "$W/fpm.conf" </dev/null >/dev/null 2>&1
}

"$@"
