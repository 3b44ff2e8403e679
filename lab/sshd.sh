# The first process of a machine to log in to, in namespaces of mounts, processes
# and host name that end with it: it becomes sshd.
# usage: sh -c SCRIPT sshd DIR NAME SSHD [UNSHARE UID GID]
set -eu
dir=$1 name=$2 sshd=$3
mount --make-rslave / # what is mounted here is nobody else's
mount -t proc proc /proc
hostname "$name"
mount --bind "$dir/passwd" /etc/passwd # in which home is the lab's
# What sshd would write about logins, and the folder that it wants to be there, are not this machine's.
for log in /var/log/wtmp /var/log/btmp /var/log/lastlog; do
	[ ! -e "$log" ] || mount --bind /dev/null "$log"
done
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/sshd
set -- "$sshd" -D -e -f "$dir/sshd_config" ${4:+"$4" "$5" "$6"}
if [ $# -gt 5 ]; then # a plain user started it, who is root in these namespaces only
	exec "$6" --user --map-user="$7" --map-group="$8" "$1" "$2" "$3" "$4" "$5"
fi
exec "$@"
