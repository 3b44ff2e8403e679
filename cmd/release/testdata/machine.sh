# Machines for tests, sourced by scripts: copies of this system that are thrown away, each with its own systemd and network.
# The script runs as root, as the first process of mount, process and network namespaces of its own, so that nothing outlives it:
#   unshare --mount --pid --net --fork --kill-child SCRIPT ...
# $work is a folder for the machines.

mount -t proc proc /proc
mount -t tmpfs tmpfs "$work"
mkdir "$work/cgroup"
mount -t cgroup2 cgroup2 "$work/cgroup"
group=$work/cgroup/weir-machines-$(od -An -N4 -tx4 /dev/urandom | tr -d ' ')
mkdir "$group"
ip link set lo up
ip link add machines type bridge
ip link set machines up

# machine NAME NUMBER: boots a machine with the address 10.99.0.NUMBER.
machine() {
	local dir=$work/$1 program pid
	mkdir -p "$dir"/{upper,work,root} "$group/$1"
	mount -t overlay overlay -o "lowerdir=/,upperdir=$dir/upper,workdir=$dir/work" "$dir/root"
	(
		echo 0 >"$group/$1/cgroup.procs"
		exec unshare --mount --pid --net --cgroup --uts --ipc --fork --kill-child bash "${BASH_SOURCE[0]%/*}/boot.sh" "$dir/root" "$1"
	) </dev/null >"$dir/boot.log" 2>&1 &
	program=$!
	until_true pgrep -P "$program"
	pid=$(pgrep -P "$program")
	echo "$pid" >"$dir/pid"
	ip link add "$1" type veth peer name eth0 netns "$pid"
	ip link set "$1" master machines up
	until_true on "$1" "systemctl is-active --quiet multi-user.target"
	on "$1" "ip link set lo up; ip link set eth0 up; ip addr add 10.99.0.$2/24 dev eth0"
}

# on NAME COMMAND: runs a command of the shell on a machine.
on() {
	nsenter --target "$(cat "$work/$1/pid")" --mount --pid --net --cgroup --uts --ipc --wdns=/ \
		env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/root bash -c "$2"
}

# coordinator ARGUMENTS: a command as an administrator gives it on the coordinator's machine, which is one.
coordinator() { on one "setpriv --reuid=weir --regid=weir --clear-groups env WEIR_CONFIG=/var/lib/weir/coordinator.json weir $*"; }

# up: two sites are up.
up() { [ "$(coordinator site list --json | grep -c '"up": *true')" = 2 ]; }

# sound NAME UNITS: none of a machine's units has failed or was started again.
sound() { [ "$(on "$1" "systemctl show --value -p Result -p NRestarts $2" | sort -u | xargs)" = "0 success" ]; }

until_true() {
	for _ in $(seq 600); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	fail "not within a minute: $*"
}

fail() {
	echo "$*" >&2
	false
}

# shows REASON: what the machines' services have said.
shows() {
	echo "$1" >&2
	for dir in "$work"/*/pid; do
		dir=${dir%/pid}
		cat "$dir/boot.log" >&2
		on "${dir##*/}" "journalctl --no-pager -n 40 -u 'weir-*'" >&2 || true
	done
}

ends() {
	local pid
	for pid in "$work"/*/pid; do kill -9 "$(cat "$pid")" || true; done
	wait
	find "$group" -depth -type d -exec rmdir {} + || true
}

trap 'shows "line $LINENO: $BASH_COMMAND"' ERR
trap ends EXIT
