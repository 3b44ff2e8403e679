# The first process of a pool of HTCondor, in namespaces of mounts and processes
# that end with it: it makes the root folder that the pool's programs see, then
# keeps condor_master. In that root /usr is Debian 13's, unpacked; all else is this
# machine's at the same path, so that a path means the same inside and outside.
# usage: sh -c SCRIPT pool UNPACKED DIR UID GID
set -eu
unpacked=$1 dir=$2 uid=$3 gid=$4
new=$dir/root
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

mount --make-rslave / # what is mounted here is nobody else's
read -r pid _ </proc/self/stat # as the world outside knows this process
echo "$pid" >"$dir/pid"
mount -t tmpfs -o mode=755 tmpfs "$new"
mount --make-unbindable "$new" # else the folder that it lies in would bring it along
for path in /*; do
	name=${path#/}
	case $name in
	bin | sbin | lib | lib32 | lib64 | libx32 | usr | proc) continue ;;
	esac
	if [ -L "$path" ]; then
		cp -P "$path" "$new/$name"
	elif [ -d "$path" ]; then
		mkdir "$new/$name"
		mount --rbind "$path" "$new/$name"
	fi
done
mkdir "$new/usr" "$new/proc" "$new/.old"
mount --bind "$unpacked/usr" "$new/usr"
mount -o remount,bind,ro "$new/usr"
for name in bin sbin lib lib64; do
	ln -s "usr/$name" "$new/$name"
done
mount -t proc proc "$new/proc"
for name in passwd group hosts nsswitch.conf; do
	[ ! -e "/etc/$name" ] || mount --bind "$dir/etc/$name" "$new/etc/$name"
done
[ ! -e /etc/ld.so.cache ] || mount --bind /dev/null "$new/etc/ld.so.cache" # it is of another /usr
cd "$new"
pivot_root . .old
hash -r
umount -l /.old
cd "$dir"
# Whoever started the pool is the plain user uid inside: HTCondor takes no jobs of
# root's, and what jobs and submitters write is theirs.
unshare --user --map-user="$uid" --map-group="$gid" env -i PATH=/usr/bin:/usr/sbin HOME="$dir" LC_ALL=C.UTF-8 \
	CONDOR_CONFIG="$dir/condor_config" condor_master -f
