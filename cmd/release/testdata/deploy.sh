#!/bin/bash
# Deploys a coordinator and two agents on two machines with systemd that are thrown away, twice, and moves a dataset between them:
#   deploy.sh PACKAGE.deb SCRIPT FOLDER
# Its environment is that of machine.sh. The script's ssh is nsenter.
set -euo pipefail
package=$1 script=$2 work=$3
. "${BASH_SOURCE[0]%/*}/machine.sh"
machine one 1
machine two 2
{
	echo '#!/bin/bash'
	declare -f on
	echo "work=$work"
	echo 'on "${1#root@}" "$2"'
} >"$work/ssh"
chmod 755 "$work/ssh"
export SSH=$work/ssh

"$script" "$package" one A=one:/data/a B=two:/data/b
until_true up
on one "install -d /data/a/store; head -c 100000 /dev/urandom >/data/a/store/f"
coordinator dataset add /store --site A
coordinator transfer submit /store --to B --approve --wait
cmp "$work/one/upper/data/a/store/f" "$work/two/upper/data/b/store/f"
for each in "one weir-coordinator" "one weir-agent" "two weir-agent"; do
	sound $each
	on ${each% *} "systemctl is-enabled --quiet ${each#* }"
done

# Once more: tokens and state are kept, and what an administrator has changed as well, beside. A wrong argument is refused before anything happens.
sum=$(on two "sha256sum /etc/weir/agent.token")
on two "echo 'slots: 9' >>/etc/weir/agent.yaml; rm -f /etc/weir/*.old"
"$script" "$package" one A=one:/data/a B=two:/data/b
until_true up
[ "$(on two "cd /etc/weir; ls *.old; grep slots *")" = "$(printf 'agent.yaml.old\nagent.yaml.old:slots: 9')" ]
! on one "ls /etc/weir/*.new" 2>/dev/null || fail "copies remain"
[ "$(on two "sha256sum /etc/weir/agent.token")" = "$sum" ]
coordinator dataset list | grep /store
! "$script" "$package" one "A=one:/data/a;reboot" || false
echo "deployed twice"
