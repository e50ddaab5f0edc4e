#!/bin/bash
# Trial of the container image: its command starts as its user on a root that cannot be written. Run by root:
#
#   unshare --mount --net --pid --fork --kill-child deploy/checks/image.sh BUNDLE
#
# BUNDLE is what `umoci unpack` makes: a root file system with the runtime's configuration.
set -euo pipefail

bundle=$(realpath "$1")
root=$(mktemp -d)
log=$(mktemp)
fail() { cat "$log" >&2; echo "image: $*" >&2; exit 1; }

mount --make-rprivate /
mount --bind "$bundle/rootfs" "$root"
mount -o remount,ro,bind "$root"
# What every engine of containers provides.
mount --bind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=0700,uid=65532,gid=65532 tmpfs "$root/data"
ip link set lo up
read -r user cwd < <(jq -r '"\(.process.user.uid):\(.process.user.gid) \(.process.cwd)"' "$bundle/config.json")
[ "$user" = 65532:65532 ] || fail "the image runs as $user"
[ "$cwd" = /data ] || fail "the image works in $cwd"
mapfile -t arguments < <(jq -r '.process.args[]' "$bundle/config.json")
mapfile -t environment < <(jq -r '.process.env[]' "$bundle/config.json")
if touch "$root/usr/bin/written" 2>/dev/null; then fail "the root can be written"; fi

env --ignore-environment "${environment[@]}" \
    SLUICE_CHAIN__RPC_URL=http://127.0.0.1:1 SLUICE_GEYSER__ENDPOINTS__0__URL=http://127.0.0.1:2 \
    chroot --userspec="$user" "$root" "${arguments[@]}" >"$log" 2>&1 &
service=$!
for ((tries = 0; tries < 600; tries++)); do
    if curl --silent --fail --max-time 5 http://127.0.0.1:8787/health/live >/dev/null &&
        curl --silent --fail --max-time 5 http://127.0.0.1:8788/health/live >/dev/null; then
        kill -TERM "$service"
        wait "$service" || fail "the service ended with $? after SIGTERM"
        test -s "$root/data/sluice.db" || fail "there is no database in /data"
        echo "the image starts, keeps its data in /data, and ends"
        exit 0
    fi
    kill -0 "$service" 2>/dev/null || fail "the service ended"
    sleep 0.1
done
fail "the service does not answer"
