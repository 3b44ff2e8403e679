#!/bin/bash
# Installs a release on a machine with systemd that is thrown away, moves a dataset with its services, upgrades and removes it; first the
# deb, then the rpm:
#   install.sh FOLDER-OF-1.2.3 FOLDER-OF-1.2.4 FOLDER
# Its environment is that of machine.sh.
set -euo pipefail
work=$3
. "${BASH_SOURCE[0]%/*}/machine.sh"
machine one 1
for kind in deb rpm; do
	cp "$1"/weir[_-]1.2.3*.$kind "$work/one/upper/old.$kind"
	cp "$2"/weir[_-]1.2.4*.$kind "$work/one/upper/new.$kind"
done
one() { on one "set -e; $1"; }
units="weir-coordinator weir-agent weir-b"

one "dpkg -i /old.deb" >&2
[ "$(one "weir version | cut -d, -f1")" = "weir 1.2.3" ]
one "ls /usr/share/man/man1/weir-coordinator.1.gz /usr/share/weir/grafana/weir-transfers.json /usr/share/weir/prometheus/weir.yml" >&2
[ "$(one "stat -c %U:%a /var/lib/weir")" = weir:700 ]
! one "weir config check agent /etc/weir/agent.yaml" || fail "the agent's token does not exist yet"
for unit in coordinator agent serve; do
	[ $unit = agent ] || one "weir config check $unit /etc/weir/$unit.yaml" >&2
	one "systemd-analyze verify --man=no weir-$unit.service" >&2
	exposed=$(one "systemd-analyze security --no-pager weir-$unit" | sed -n 's/.*exposure level.*: \([0-9]\)\.\([0-9]\).*/\1\2/p')
	[ "$exposed" -lt 30 ] || fail "weir-$unit: an exposure of $exposed tenths"
	! one "systemctl is-active --quiet weir-$unit || systemctl is-enabled --quiet weir-$unit" || fail "weir-$unit was started or enabled"
done

# An administrator configures the services, and starts a coordinator and the agents of two sites.
one "systemctl enable --now weir-coordinator" >&2
until_true coordinator site list
address=$(one "journalctl --no-pager -o cat -u weir-coordinator" | sed -n 's/^coordinator at //p')
[ "${address%#*}" = https://one:9443 ]
for site in A B; do
	coordinator coordinator token --site $site >"$work/one/token"
	one "umask 077; cat >/etc/weir/$site.token; chown weir-agent /etc/weir/$site.token" <"$work/one/token"
done
one "sed -i 's,^coordinator:.*,coordinator: $address,; s,/etc/weir/agent.token,A.token,' /etc/weir/agent.yaml
	sed 's,^site: A,site: B,; s,^root:.*,root: /srv/b,; s,A.token,B.token,; s,:9444,:9445,' /etc/weir/agent.yaml >/etc/weir/b.yaml
	sed 's,/etc/weir/agent.yaml,/etc/weir/b.yaml,' /usr/lib/systemd/system/weir-agent.service >/etc/systemd/system/weir-b.service
	weir config check agent /etc/weir/agent.yaml
	systemctl daemon-reload
	install -d -o weir-agent /var/lib/weir-agent/store/run1 /srv/b
	for n in 1 2 3; do head -c 1000000 /dev/urandom >/var/lib/weir-agent/store/run1/f\$n; done
	systemctl enable --now weir-agent weir-b" >&2
until_true up
coordinator dataset add /store/run1 --site A
coordinator transfer submit /store/run1 --to B --approve --wait
one "diff -r /var/lib/weir-agent/store /srv/b/store"
sound one "$units"

# The upgrade keeps what was configured and what is in the database, and restarts the services.
was=$(one "systemctl show --value -p MainPID weir-coordinator weir-agent" | xargs)
one "dpkg -i /new.deb" >&2
[ "$(one "weir version | cut -d, -f1")" = "weir 1.2.4" ]
one "grep -q '^coordinator: $address' /etc/weir/agent.yaml"
until_true up
[ "$(one "systemctl show --value -p MainPID weir-coordinator weir-agent" | xargs)" != "$was" ]
! one "systemctl is-active --quiet weir-serve" || fail "an upgrade started weir-serve"
coordinator dataset list | grep /store/run1
one "head -c 1000 /dev/urandom >/var/lib/weir-agent/store/run1/f4"
coordinator dataset add /store/run1 --site A
coordinator transfer submit /store/run1 --to B --approve --wait
one "diff -r /var/lib/weir-agent/store /srv/b/store"
sound one "$units"

# A backup of the service while it runs, as its administrator makes it.
one "umask 077; head -c 24 /dev/urandom | base64 >/etc/weir/backup.passphrase"
saved() { one "weir coordinator $1 /root/weir.age --passphrase-file /etc/weir/backup.passphrase --state $2"; }
saved backup /var/lib/weir
! saved backup /var/lib/weir || fail "a backup was replaced"
saved restore /root/restored
one "cmp /root/restored/secrets.key /var/lib/weir/secrets.key"
[ "$(one "sqlite3 /root/restored/weir.db 'SELECT COUNT(*) FROM attempt'")" -ge 4 ]
! saved restore /root/restored || fail "a coordinator was replaced"
[ "$(one "find /var/lib/weir ! -user weir | wc -l")" = 0 ]

# A service that is killed is started again, one with a wrong configuration is not. All stop without a failure.
one "systemctl kill -s KILL weir-coordinator"
until_true one '[ "$(systemctl show --value -p NRestarts weir-coordinator)" = 1 ]'
until_true up
one "systemctl stop $units"
[ "$(one "systemctl show --value -p Result $units" | xargs)" = "success success success" ]
one "sed -i 's/^listen:/lisen:/' /etc/weir/coordinator.yaml; systemctl start weir-coordinator"
until_true one "systemctl is-failed --quiet weir-coordinator"
one "journalctl --no-pager -u weir-coordinator -n 5 | grep 'did you mean listen'"
one "sed -i 's/^lisen:/listen:/' /etc/weir/coordinator.yaml"

# A database that a later version has changed is refused.
one "sqlite3 /var/lib/weir/weir.db \"INSERT INTO schema_files VALUES ('coordinator', 99, '100_later.sql', '')\"
	systemctl start weir-coordinator"
until_true one "journalctl --no-pager -u weir-coordinator | grep 'the database was made by a newer version of this program (100_later.sql)'"

# What was made stays.
one "systemctl start weir-agent; dpkg -r weir" >&2
! one "systemctl is-active --quiet weir-agent || ls /usr/bin/weir" || fail "something of the package remains"
one "ls /etc/weir/coordinator.yaml"
one "dpkg -P weir" >&2
! one "ls /etc/weir/coordinator.yaml" || fail "the configuration remains"
one "ls /var/lib/weir/weir.db /srv/b/store/run1/f4"

# The rpm has the same scripts, with other arguments.
one "rm -r /etc/weir; rpm -i --nodeps --nosignature /old.rpm; systemctl enable --now weir-serve; echo '# mine' >>/etc/weir/serve.yaml" >&2
was=$(one "systemctl show --value -p MainPID weir-serve")
until_true one "curl -sf http://127.0.0.1:8443/store/run1/f4"
one "rpm -U --nodeps --nosignature /new.rpm" >&2
[ "$(one "weir version | cut -d, -f1")" = "weir 1.2.4" ]
[ "$(one "systemctl show --value -p MainPID weir-serve")" != "$was" ]
until_true one "curl -sf http://127.0.0.1:8443/store/run1/f4"
one "grep -q mine /etc/weir/serve.yaml"
one "rpm -e --nodeps weir" >&2
! one "systemctl is-active --quiet weir-serve || ls /usr/bin/weir" || fail "something of the rpm remains"
one "ls /var/lib/weir-agent/store/run1/f4"
echo "installed, upgraded and removed"
