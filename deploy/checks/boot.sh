#!/bin/bash
# Becomes systemd on the root file system ROOT, with a journal and nothing else. Run by package.sh in namespaces of its own.
set -euo pipefail

root=$1
mount -t proc proc "$root/proc"
# As in every container: systemd would set limits of the whole machine.
mount -o bind,ro "$root/proc/sys" "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=0755 tmpfs "$root/dev"
cp --archive /dev/{null,zero,full,random,urandom,tty} "$root/dev"
mkdir "$root"/dev/{pts,shm}
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln --symbolic pts/ptmx "$root/dev/ptmx"
mount -t tmpfs tmpfs "$root/dev/shm"

# By chroot it would not do: what runs in one gets no namespace of users, which the unit asks for.
cd "$root"
pivot_root . mnt
umount --lazy /mnt

# What the machine starts by itself, and what keeps packages on it from starting anything.
rm -rf /{etc,lib}/systemd/system/*.wants /{etc,lib}/systemd/system-generators
rm -f /usr/sbin/policy-rc.d
units="basic.target systemd-journald.service"
printf '[Unit]\nRequires=%s\nAfter=%s\n' "$units" "$units" >/etc/systemd/system/trial.target
exec env --ignore-environment container=trial PATH=/usr/sbin:/usr/bin /lib/systemd/systemd --unit=trial.target
