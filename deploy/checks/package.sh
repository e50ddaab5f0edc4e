#!/bin/bash
# Trial of the Debian package: installed, started, upgraded, removed and purged on this machine's own system, of which nothing
# is changed: all writes go to a layer in memory, in namespaces that end with this script. Run by root:
#
#   unshare --mount --net --pid --fork --kill-child deploy/checks/package.sh FIRST.deb SECOND.deb
set -euo pipefail

first=$(realpath "$1")
second=$(realpath "$2")
layer=$(mktemp -d)
root=$layer/root
config=/etc/sluice/sluice.toml

fail() { echo "package: $*" >&2; exit 1; }
inside() { chroot "$root" "$@"; }

mount --make-rprivate /
mount -t tmpfs tmpfs "$layer"
mkdir "$layer"/{root,upper,work}
mount -t overlay overlay -o "lowerdir=/,upperdir=$layer/upper,workdir=$layer/work" "$root"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
# Without this, scripts would talk to the machine's own systemd.
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
ip link set lo up
cp "$first" "$root/tmp/first.deb"
cp "$second" "$root/tmp/second.deb"
export DEBIAN_FRONTEND=noninteractive

# As the unit runs it: by its command, user and folder, without capabilities.
start() {
    local command
    command=$(sed -n 's/^ExecStart=//p' "$root/usr/lib/systemd/system/sluice.service")
    inside install -d -m 0700 -o sluice -g sluice /var/lib/sluice
    # Not by the function: its process would get the signal in the service's place.
    # shellcheck disable=SC2086
    chroot "$root" setpriv --reuid sluice --regid sluice --init-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
        env --ignore-environment --chdir=/var/lib/sluice $command >"$layer/log" 2>&1 &
    service=$!
    local tries
    for ((tries = 0; tries < 600; tries++)); do
        if curl --silent --fail --max-time 5 http://127.0.0.1:8787/health/live >/dev/null; then
            return
        fi
        kill -0 "$service" 2>/dev/null || { cat "$layer/log" >&2; fail "the service ended"; }
        sleep 0.1
    done
    cat "$layer/log" >&2
    fail "the service does not answer"
}

stop() {
    # The signal that systemd sends.
    kill -TERM "$service"
    wait "$service" || fail "the service ended with $? after SIGTERM"
}

echo "install"
inside dpkg --install /tmp/first.deb
inside sluice --version
[ "$(inside stat --format '%U:%G %a' $config)" = "root:sluice 640" ] || fail "$config is not root:sluice 640"
[ "$(inside getent passwd sluice | cut -d: -f6-7)" = "/var/lib/sluice:/usr/sbin/nologin" ] || fail "the user can log in"
inside test -L /etc/systemd/system/multi-user.target.wants/sluice.service || fail "the service is not enabled"
grep -q '^encryption-key = ' "$root$config" || fail "the configuration has no key"

echo "start"
start
stop
inside test -s /var/lib/sluice/data/sluice.db || fail "the service keeps no database in its folder"
echo '# kept' >>"$root$config"
before=$(sha256sum <"$root$config")

echo "upgrade"
inside dpkg --install /tmp/second.deb
[ "$(sha256sum <"$root$config")" = "$before" ] || fail "the upgrade changed the configuration"
start
stop

echo "remove"
inside dpkg --remove sluice
inside test ! -e /usr/bin/sluice || fail "the program is left"
inside test -e $config -a -e /var/lib/sluice/data/sluice.db || fail "configuration or database went with the program"
inside dpkg --purge sluice
inside test ! -e /etc/sluice -a ! -e /var/lib/sluice || fail "something is left after the purge"
inside test ! -e /etc/systemd/system/multi-user.target.wants/sluice.service || fail "the service is still enabled"
echo "the package installs, starts, upgrades and goes"
