#!/bin/sh
# Installs the Debian packages of packages.txt that are missing, as root or through sudo: those of the first tier, or, as `packages.sh
# full`, all. Where it cannot, it prints what is missing and why tests will be skipped.
set -eu
cd "$(dirname "$0")"

list() {
	if [ "$tier" = full ]; then cat packages.txt; else sed '/^# The full tier/q' packages.txt; fi | grep -v '^#' | awk '{print $1}'
}
tier=${1-}

if ! command -v dpkg-query >/dev/null; then
	echo "needs: not a Debian system: tests that use these programs are skipped where they are missing:"
	list
	exit 0
fi

missing=
for package in $(list); do
	# Docker's packages have these programs, and would be removed for Debian's.
	case $package in containerd | runc) ! command -v "$package" >/dev/null || continue ;; esac
	state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
	[ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
	become=
elif sudo -n true 2>/dev/null; then
	become="sudo -n"
else
	echo "needs: these packages are missing and only root can install them:$missing"
	echo "needs: run  sudo apt-get install --no-install-recommends$missing"
	echo "needs: until then the tests that use them are skipped (WEIR_REQUIRE=all makes them fail instead)"
	exit 0
fi

echo "needs: installing$missing"
$become apt-get update -qq
# Servers are started by the tests, on ports of their own: not by the system.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	printf '#!/bin/sh\nexit 101\n' | $become tee "$policy" >/dev/null
	$become chmod 755 "$policy"
	trap '$become rm -f "$policy"' EXIT
fi
# Debian's PostgreSQL would make a cluster that starts with the machine.
cluster=/etc/postgresql-common/createcluster.conf
case $missing in *" postgresql-"*)
	[ -e "$cluster" ] || { $become mkdir -p "${cluster%/*}" && echo 'create_main_cluster = false' | $become tee "$cluster" >/dev/null; } ;;
esac
# Through sudo, too, which keeps no variables: a package may ask what it is to be.
$become env DEBIAN_FRONTEND=noninteractive UCF_FORCE_CONFFOLD=1 apt-get install -qq -y --no-install-recommends $missing
