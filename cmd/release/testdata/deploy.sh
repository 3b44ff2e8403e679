#!/bin/bash
# Deploys a coordinator and two agents on copies of this system that are thrown away, twice, and moves a dataset between them.
# It runs as root, as the first process of mount, process and network namespaces of its own:
#   unshare --mount --pid --net --fork --kill-child deploy.sh PACKAGE.deb SCRIPT FOLDER
# The machines are folders, with one network. Programs for them are started by ssh and systemctl of this script.
set -euo pipefail
package=$1 script=$2 work=$3
trap 'echo "line $LINENO: $BASH_COMMAND" >&2; tail -n 20 $work/*/root/tmp/*.log >&2' ERR
mount -t tmpfs tmpfs "$work"
ip link set lo up
for host in one two; do
	mkdir -p "$work/$host"/{upper,work,root}
	mount -t overlay overlay -o "lowerdir=/,upperdir=$work/$host/upper,workdir=$work/$host/work" "$work/$host/root"
	for folder in tmp run; do mount -t tmpfs tmpfs "$work/$host/root/$folder"; done
	chmod 1777 "$work/$host/root/tmp"
	mount -t proc proc "$work/$host/root/proc"
	mount --rbind /dev "$work/$host/root/dev"
	printf '127.0.0.1 localhost\n127.0.1.1 one\n127.0.1.2 two\n' >"$work/$host/root/etc/hosts"
	rm -f "$work/$host/root/usr/bin/systemctl"
	cat >"$work/$host/root/usr/bin/systemctl" <<-'STUB'
		#!/bin/bash
		# systemctl restart UNIT: starts a service as its unit does. Agents listen at their machine's address only: all machines are one.
		[ "$1" = restart ] || exit 0
		value() { sed -n "s/^$1=//p" "/usr/lib/systemd/system/$unit.service"; }
		unit=$2 pid=/run/$2.pid more=
		[ ! -e $pid ] || { kill $(cat $pid); while kill -0 $(cat $pid) 2>/dev/null; do sleep 0.1; done; }
		[ $unit != weir-agent ] || more="--listen $(sed -n 's,^url: https://,,p' /etc/weir/agent.yaml)"
		env -i PATH=/usr/bin $(value Environment) setpriv --reuid=$(value User) --regid=$(value User) --clear-groups $(value ExecStart) $more \
			>>/tmp/$unit.log 2>&1 </dev/null &
		echo $! >$pid
	STUB
	chmod 755 "$work/$host/root/usr/bin/systemctl"
done
cat >"$work/ssh" <<EOF
#!/bin/bash
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C chroot "$work/\${1#root@}/root" sh -c "\$2"
EOF
chmod 755 "$work/ssh"
export SSH=$work/ssh
coordinator() { "$SSH" root@one "setpriv --reuid=weir --regid=weir --clear-groups env WEIR_CONFIG=/var/lib/weir/coordinator.json weir $*"; }
up() { for _ in $(seq 300); do [ "$(coordinator site list --json | grep -c '"up": *true')" != 2 ] || return 0; sleep 0.1; done; false; }

"$script" "$package" one A=one:/data/a B=two:/data/b
up
install -d "$work/one/root/data/a/store"
head -c 100000 /dev/urandom >"$work/one/root/data/a/store/f"
coordinator dataset add /store --site A
coordinator transfer submit /store --to B --approve --wait
cmp "$work/one/root/data/a/store/f" "$work/two/root/data/b/store/f"

# Once more: tokens and state are kept. A wrong argument is refused before anything happens.
sum=$(sha256sum "$work/two/root/etc/weir/agent.token")
"$script" "$package" one A=one:/data/a B=two:/data/b
up
[ "$(sha256sum "$work/two/root/etc/weir/agent.token")" = "$sum" ]
coordinator dataset list | grep /store
! "$script" "$package" one "A=one:/data/a;reboot" || false
echo "deployed twice"
