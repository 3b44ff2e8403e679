#!/bin/bash
# Installs a package in a copy of this system that is thrown away, moves a dataset with its services, upgrades and removes it.
# It runs as root, as the first process of mount, process and network namespaces of its own:
#   unshare --mount --pid --net --fork --kill-child install.sh OLD.deb NEW.deb FOLDER
set -euo pipefail

if [ "${1-}" != inside ]; then
	mount -t tmpfs tmpfs "$3"
	mkdir "$3"/upper "$3"/work "$3"/root
	mount -t overlay overlay -o "lowerdir=/,upperdir=$3/upper,workdir=$3/work" "$3/root"
	for folder in tmp var/tmp run; do
		mount -t tmpfs tmpfs "$3/root/$folder"
		chmod 1777 "$3/root/$folder"
	done
	mount -t proc proc "$3/root/proc"
	mount --rbind /dev "$3/root/dev"
	ip link set lo up
	cp "$1" "$3/root/tmp/old.deb"
	cp "$2" "$3/root/tmp/new.deb"
	cp "$0" "$3/root/tmp/install.sh"
	exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C chroot "$3/root" bash /tmp/install.sh inside
fi

trap 'echo "line $LINENO: $BASH_COMMAND" >&2; tail -n 20 /tmp/*.log >&2' ERR
cd /

fail() {
	echo "$*" >&2
	false
}

# value UNIT KEY: what an installed unit says.
value() { sed -n "s/^$2=//p" "/usr/lib/systemd/system/$1.service"; }

# start UNIT [CONFIG]: starts a service as its unit does, and with no more privileges.
start() {
	local user line
	user=$(value "$1" User)
	line=$(value "$1" ExecStart)
	[ -z "${2-}" ] || line=${line/%--config */--config $2}
	env -i PATH=/usr/bin LC_ALL=C $(value "$1" Environment) setpriv --reuid="$user" --regid="$user" --clear-groups --no-new-privs \
		--bounding-set=-all --inh-caps=-all $line >>"/tmp/${2+b-}$1.log" 2>&1 &
	pid=$!
}

# coordinator ARGUMENTS: a command as an administrator gives it on the coordinator's machine.
coordinator() { setpriv --reuid=weir --regid=weir --clear-groups env WEIR_CONFIG=/var/lib/weir/coordinator.json /usr/bin/weir "$@"; }

until_true() {
	for _ in $(seq 300); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	fail "not within 30 s: $*"
}

dpkg -i /tmp/old.deb
[ "$(weir version | cut -d, -f1)" = "weir 1.2.3" ]
[ -e /usr/share/man/man1/weir-coordinator.1.gz ]
[ -e /usr/share/weir/grafana/weir-transfers.json ]
[ -e /usr/share/weir/prometheus/weir.yml ]
[ "$(stat -c %U:%a /var/lib/weir)" = weir:700 ]
for each in coordinator agent serve; do weir config check $each /etc/weir/$each.yaml; done
for unit in coordinator agent serve; do systemd-analyze verify --man=no "/usr/lib/systemd/system/weir-$unit.service"; done

# An administrator configures the services, and starts a coordinator and the agents of two sites.
sed -i 's,^# url:.*,url: https://localhost:9443,' /etc/weir/coordinator.yaml
start weir-coordinator
first=$pid
until_true coordinator site list
address=$(sed -n 's/^coordinator at //p' /tmp/weir-coordinator.log)
for site in A B; do
	coordinator coordinator token --site $site >/etc/weir/$site.token
	chown weir-agent /etc/weir/$site.token
	chmod 600 /etc/weir/$site.token
done
install -d -o weir-agent /var/lib/weir-agent/store/run1 /srv/b
sed -i "s,^coordinator:.*,coordinator: $address,; s,/etc/weir/agent.token,A.token," /etc/weir/agent.yaml
sed "s,^site: A,site: B,; s,^root:.*,root: /srv/b,; s,A.token,B.token,; s,:9444,:9445," /etc/weir/agent.yaml >/etc/weir/b.yaml
for n in 1 2 3; do head -c 1000000 /dev/urandom >/var/lib/weir-agent/store/run1/f$n; done
start weir-agent
start weir-agent /etc/weir/b.yaml
up() { [ "$(coordinator site list --json | grep -c '"up": *true')" = 2 ]; }
until_true up
coordinator dataset add /store/run1 --site A
coordinator transfer submit /store/run1 --to B --approve --wait
diff -r /var/lib/weir-agent/store /srv/b/store

# The upgrade keeps what was configured and what is in the database.
dpkg -i /tmp/new.deb
[ "$(weir version | cut -d, -f1)" = "weir 1.2.4" ]
grep -q '^url: https://localhost' /etc/weir/coordinator.yaml
kill "$first"
wait "$first"
start weir-coordinator
first=$pid
until_true up
coordinator dataset list | grep /store/run1
head -c 1000 /dev/urandom >/var/lib/weir-agent/store/run1/f4
coordinator dataset add /store/run1 --site A
coordinator transfer submit /store/run1 --to B --approve --wait
diff -r /var/lib/weir-agent/store /srv/b/store
# A backup of the service while it runs, as its administrator makes it.
head -c 24 /dev/urandom | base64 >/etc/weir/backup.passphrase
saved() { weir coordinator "$1" /tmp/weir.age --passphrase-file /etc/weir/backup.passphrase --state "$2"; }
saved backup /var/lib/weir
! saved backup /var/lib/weir || fail "a backup was replaced"
saved restore /tmp/restored
cmp /tmp/restored/secrets.key /var/lib/weir/secrets.key
[ "$(sqlite3 /tmp/restored/weir.db 'SELECT COUNT(*) FROM attempt')" -ge 4 ]
! saved restore /tmp/restored || fail "a coordinator was replaced"
[ "$(find /var/lib/weir ! -user weir | wc -l)" = 0 ]
kill "$first"
wait "$first"

# A database that a later version has changed is refused.
sqlite3 /var/lib/weir/weir.db "INSERT INTO schema_files VALUES ('coordinator', 99, '100_later.sql', '')"
start weir-coordinator
! wait "$pid" || fail "a coordinator runs with a database of a later version"
grep 'the database was made by a newer version of this program (100_later.sql)' /tmp/weir-coordinator.log

# What was made stays.
dpkg -r weir
[ ! -e /usr/bin/weir ]
[ -e /etc/weir/coordinator.yaml ]
dpkg -P weir
[ ! -e /etc/weir/coordinator.yaml ]
[ -e /var/lib/weir/weir.db ]
[ -e /srv/b/store/run1/f4 ]
echo "installed, upgraded and removed"
