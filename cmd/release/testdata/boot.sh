# boot.sh ROOT NAME: becomes systemd with this root, in namespaces of its own that machine.sh has made.
set -eu
root=$1
for folder in tmp var/tmp run; do mount -t tmpfs tmpfs "$root/$folder"; done
chmod 1777 "$root/tmp" "$root/var/tmp"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
	touch "$root/dev/$device"
	mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for n in 0:stdin 1:stdout 2:stderr; do ln -s "fd/${n%:*}" "$root/dev/${n#*:}"; done
hostname "$2"
echo "$2" >"$root/etc/hostname"
printf '127.0.0.1 localhost\n10.99.0.1 one\n10.99.0.2 two\n' >"$root/etc/hosts"
: >"$root/etc/machine-id"
rm -rf "$root"/etc/systemd/system/*.wants # no services of this system
mkdir "$root/.old"
cd "$root"
pivot_root . .old
cd /
umount -l /.old
rmdir /.old
exec env -i container=weir-test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=multi-user.target --show-status=false
