#!/bin/bash
# Trial of the Debian package: installed, started, upgraded, removed and purged on this machine's own system, of which nothing
# is changed: all writes go to a layer in memory, in namespaces that end with this script. Run by root:
#
#   unshare --mount --net --pid --fork --kill-child deploy/checks/package.sh FIRST.deb SECOND.deb
#
# A systemd of the trial's own runs the unit, so that the service works within all that the unit takes from it. On a machine
# that lets none start, the unit's command runs by itself, and the trial says why.
set -euo pipefail

first=$(realpath "$1")
second=$(realpath "$2")
checks=$(dirname "$(realpath "$0")")
layer=$(mktemp -d)
root=$layer/root
group=$layer/groups/sluice-trial-${layer##*.}
config=/etc/sluice/sluice.toml
hook=https://trial.example/hook
ports=(8787 8788)
# Processes: what the trial's systemd is started by, and itself; none where the command runs by itself.
machine=
systemd=

mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs tmpfs "$layer"
mkdir "$layer"/{root,upper,work,groups}
mount -t overlay overlay -o "lowerdir=/,upperdir=$layer/upper,workdir=$layer/work" "$root"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
# Without this, scripts would talk to the machine's own systemd.
mount -t tmpfs -o mode=0755 tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
ip link set lo up
cp "$first" "$root/tmp/first.deb"
cp "$second" "$root/tmp/second.deb"
export DEBIAN_FRONTEND=noninteractive

inside() {
    if [ -n "$systemd" ]; then nsenter --target "$systemd" --all "$@"; else chroot "$root" "$@"; fi
}

as_the_service() {
    inside setpriv --reuid sluice --regid sluice --init-groups env --chdir=/var/lib/sluice "$@"
}

log() {
    if [ -n "$systemd" ]; then inside journalctl --unit=sluice --output=cat --no-pager; else cat "$layer/log"; fi
}

fail() { log >&2 || true; echo "package: $*" >&2; exit 1; }

# Starts systemd; not where this machine does not let it, which its last word explains.
boot() {
    local tries
    [ -x "$root/lib/systemd/systemd" ] || { echo "systemd is not installed"; return 1; }
    mount -t cgroup2 cgroup2 "$layer/groups" || return
    mkdir "$group" || return
    # In the group first: a namespace of groups begins at the one in which it is made.
    (echo "$BASHPID" >"$group/cgroup.procs" &&
        exec unshare --cgroup --ipc --mount --pid --uts --fork --kill-child "$checks/boot.sh" "$root") &
    machine=$!
    for ((tries = 0; tries < 150; tries++)); do
        sleep 0.1
        kill -0 "$machine" 2>/dev/null || return
        systemd=$(pgrep --parent "$machine" --exact systemd) && inside systemctl --quiet is-active trial.target && return
    done
    echo "systemd does not come up"
    return 1
}

# With systemd ends all that it started; only its group outlives that.
unboot() {
    systemd=
    pkill -KILL --parent "$machine" || true
    wait "$machine" || true
    find "$group" -depth -type d -exec rmdir {} +
} 2>/dev/null

leave() {
    if [ -n "$machine" ]; then unboot || true; fi
    umount --lazy "$layer"
    rmdir "$layer"
}

# By the unit, or as it does it: by its command, user and folder, without capabilities.
start() {
    if [ -n "$systemd" ]; then
        inside systemctl start sluice || fail "the unit does not start"
        return
    fi
    local command
    command=$(sed -n 's/^ExecStart=//p' "$root/usr/lib/systemd/system/sluice.service")
    # Not by the function: its process would get the signal in the service's place.
    # shellcheck disable=SC2086
    chroot "$root" setpriv --reuid sluice --regid sluice --init-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
        env --ignore-environment --chdir=/var/lib/sluice $command >"$layer/log" 2>&1 &
    service=$!
}

property() { inside systemctl show --property="$1" --value sluice; }

runs() {
    if [ -n "$systemd" ]; then inside systemctl --quiet is-active sluice; else kill -0 "$service" 2>/dev/null; fi
}

answers() {
    local port
    for port in "${ports[@]}"; do
        curl --silent --fail --max-time 5 "http://127.0.0.1:$port/health/live" >/dev/null || return
    done
}

await() {
    local tries
    for ((tries = 0; tries < 600; tries++)); do
        if answers; then return; fi
        runs || fail "the service ended"
        sleep 0.1
    done
    fail "the service does not answer"
}

stop() {
    if [ -n "$systemd" ]; then
        # It is started again by itself, which may be how it comes to answer.
        [ "$(property NRestarts)" = 0 ] || fail "the service ended before it was stopped"
        inside systemctl stop sluice || fail "the unit does not stop"
        [ "$(property Result) $(property ExecMainStatus)" = "success 0" ] || fail "the service did not end well"
    else
        # The signal that systemd sends.
        kill -TERM "$service"
        wait "$service" || fail "the service ended with $? after SIGTERM"
    fi
}

webhooks() {
    curl --silent --show-error --fail-with-body --max-time 5 --header "Authorization: Bearer $key" \
        --header "Content-Type: application/json" "$@" "http://127.0.0.1:${ports[0]}/api/webhooks"
}

trap leave EXIT
if ! boot >"$layer/boot" 2>&1; then
    systemd=
    echo "the unit's sandbox is left out: $(tail -n 1 "$layer/boot")"
fi

echo "install"
inside dpkg --install /tmp/first.deb
inside sluice --version
[ "$(inside stat --format '%U:%G %a' $config)" = "root:sluice 640" ] || fail "$config is not root:sluice 640"
[ "$(inside getent passwd sluice | cut -d: -f6-7)" = "/var/lib/sluice:/usr/sbin/nologin" ] || fail "the user can log in"
inside test -L /etc/systemd/system/multi-user.target.wants/sluice.service || fail "the service is not enabled"
grep -q '^encryption-key = ' "$root$config" || fail "the configuration has no key"
findings=$(as_the_service sluice doctor --config $config 2>&1 || true)
[[ $findings == *"ok       database:"* ]] || fail "sluice doctor judges nothing before the first start: $findings"

echo "start"
start
await
key=$(as_the_service sluice keys add trial --config $config | tail -n 1)
made=$(webhooks --data "{\"url\":\"$hook\",\"operations\":[\"endpoint.disabled\"]}") || fail "no webhook can be made: $made"
stop
inside test -s /var/lib/sluice/data/sluice.db || fail "the service keeps no database in its folder"
echo '# kept' >>"$root$config"
before=$(sha256sum <"$root$config")

echo "upgrade"
if [ -n "$systemd" ]; then
    start
    await
    running=$(property MainPID)
    # From here on a system call that the unit refuses ends the service: an error in its place may stay unseen.
    mkdir -p "$root/run/systemd/system/sluice.service.d"
    printf '[Service]\nSystemCallErrorNumber=kill\n' >"$root/run/systemd/system/sluice.service.d/strict.conf"
fi
inside dpkg --install /tmp/second.deb
[ "$(sha256sum <"$root$config")" = "$before" ] || fail "the upgrade changed the configuration"
if [ -n "$systemd" ]; then
    [ "$(property MainPID)" != "$running" ] || fail "the upgrade did not restart the service"
else
    start
fi
await
[[ $(webhooks) == *"$hook"* ]] || fail "the webhook is gone after the upgrade"
stop
if log | grep -E 'not permitted|[Pp]ermission denied|Read-only file system|not supported by protocol'; then
    fail "the service is refused something that it needs"
fi

echo "remove"
if [ -n "$systemd" ]; then start; fi
inside dpkg --remove sluice
if answers; then fail "the service still runs"; fi
inside test ! -e /usr/bin/sluice || fail "the program is left"
inside test -e $config -a -e /var/lib/sluice/data/sluice.db || fail "configuration or database went with the program"
inside dpkg --purge sluice
inside test ! -e /etc/sluice -a ! -e /var/lib/sluice || fail "something is left after the purge"
inside test ! -e /etc/systemd/system/multi-user.target.wants/sluice.service || fail "the service is still enabled"
echo "the package installs, starts, upgrades and goes"
