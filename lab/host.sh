# The first process of a host of its own, in namespaces of mounts, processes, host
# name and network that end with it: once its network is there it runs a program as
# a plain user. It does not become that program: who changes users is not told any
# more that who started it has died.
# usage: sh -c SCRIPT host NAME DIR UID PROGRAM [ARG...]
set -eu
name=$1 dir=$2 uid=$3
shift 3
mount --make-rslave / # what is mounted here is nobody else's
mount -t proc proc /proc
hostname "$name"
# It knows itself by name, and asks no name server.
for file in hosts nsswitch.conf; do
	[ ! -e "/etc/$file" ] || mount --bind "$dir/$file" "/etc/$file"
done
until [ -e "$dir/linked" ]; do
	sleep 0.01
done
setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"
