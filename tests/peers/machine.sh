#!/bin/sh
# machine.sh FOLDER KEYS: boot a Linux machine of one's own in fresh namespaces (unshare --mount --pid --net --uts --ipc --cgroup --fork): real systemd as process 1,
# real sshd, real dpkg, on an overlay of this machine's root file system. FOLDER/u is what it wrote; nothing of the machine below is touched.
# KEYS: folder with host_key, authorized_keys and shadow (the line of the user `worker`, who may become root with a password).
set -eu
at=$1 keys=$2
mount --make-rprivate /
mount -t tmpfs none "$at"
mkdir "$at/u" "$at/w" "$at/r"
mount -t overlay overlay -o "lowerdir=/,upperdir=$at/u,workdir=$at/w" "$at/r"
cd "$at/r"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
for each in run tmp var/log var/lib/systemd; do mount -t tmpfs none $each; done
chmod 1777 tmp
mount -t tmpfs -o mode=755 none dev
node() { mknod -m 666 "dev/$1" c "$2" "$3"; }
node null 1 3; node zero 1 5; node full 1 7; node random 1 8; node urandom 1 9; node tty 5 0
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ip link set lo up
hostname "$(cat "$keys/name")"
cp "$keys/name" etc/hostname  # systemd sets it anew
mkdir -p etc/ssh/machine root/.ssh
: > root/.bashrc  # the shell of each command over SSH reads it, and what it sets up below (pyenv, conda) takes longer than the command
cp "$keys/host_key" "$keys/authorized_keys" etc/ssh/machine/
chmod 600 etc/ssh/machine/host_key
rm -rf var/lib/apt/lists var/lib/swcatalog  # no mirror can be reached from there, and reading its lists is most of what apt does
mkdir -p var/lib/apt/lists/partial
rm -f etc/passwd.lock etc/shadow.lock
chroot . useradd --create-home --shell /bin/bash worker
sed -i '/^worker:/d' etc/shadow
cat "$keys/shadow" >> etc/shadow
mkdir -p etc/sudoers.d
echo 'worker ALL=(ALL) ALL' > etc/sudoers.d/worker
cat > etc/ssh/machine/config << 'END'
HostKey /etc/ssh/machine/host_key
AuthorizedKeysFile /etc/ssh/machine/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication yes
UsePAM no
PrintLastLog no
PrintMotd no
PidFile none
Subsystem sftp internal-sftp
END
cat > etc/systemd/system/machine-sshd.service << 'END'
[Unit]
DefaultDependencies=no
[Service]
Type=notify
RuntimeDirectory=sshd
ExecStart=/usr/sbin/sshd -D -e -f /etc/ssh/machine/config
END
cat > etc/systemd/system/machine.target << 'END'
[Unit]
Requires=basic.target machine-sshd.service
END
for each in networking systemd-networkd systemd-networkd-wait-online NetworkManager systemd-timesyncd systemd-udevd; do  # the test gave it its address
  ln -sf /dev/null etc/systemd/system/$each.service
done
export container=machine
exec chroot . /lib/systemd/systemd --system --unit=machine.target --log-target=null
