#!/bin/sh
# unpack.sh NAME unpacks the Debian packages of NAME.txt, with all that they depend on,
# into a folder of the project's own, build/NAME. The file says which release they are
# of. Nothing is installed: apt's lists and packages lie in a folder of their own
# meanwhile, and none of the packages' scripts is run. It needs no root; nothing is done
# where all is there already.
set -eu
cd "$(dirname "$0")"
name=$1
to=$PWD/../build/$name
suite=$(sed -n 's/^# suite: //p' "$name.txt")

cmp -s "$name.txt" "$to/$name.txt" && exit 0

give_up() {
	echo "needs: no $name for the lab: $1"
	echo "needs: tests that use it are skipped (WEIR_REQUIRE=all makes them fail instead)"
	exit 0
}

for program in apt-get dpkg-deb tar; do
	command -v "$program" >/dev/null || give_up "$program, which unpacks Debian's packages, is not here"
done
ID='' VERSION_CODENAME=''
. /etc/os-release
[ "$ID" = debian ] || give_up "this is not Debian, whose packages it is unpacked from"

# Debian's packages come from where this machine's own come from.
from=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Component: main' "Release: $VERSION_CODENAME" | sort -u | head -n 1)
key=/usr/share/keyrings/debian-archive-keyring.gpg
[ -n "$from" ] || give_up "apt has no source of $VERSION_CODENAME, component main"
[ -e "$key" ] || give_up "$key, which says that packages are Debian's, is not here"

echo "needs: unpacking build/$name"
rm -rf "$to"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$to" "$work/lists/partial" "$work/archives/partial"
: >"$work/status"
echo "deb [signed-by=$key] $from $suite main" >"$work/sources.list"

apt() {
	apt-get -qq -o Acquire::Retries=3 -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::preferences=/dev/null \
		-o Dir::Etc::preferencesparts=/dev/null -o Dir::State="$work" -o Dir::State::status="$work/status" -o Dir::Cache="$work" \
		-o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)" -o APT::Install-Recommends=false "$@"
}

unpack() {
	apt update && apt --download-only --yes install $(grep -v '^#' "$name.txt") >/dev/null || return 1
	# Debian's packages expect these to be there before the first of them.
	for folder in bin sbin lib lib64; do
		mkdir -p "$to/usr/$folder" && ln -s "usr/$folder" "$to/$folder" || return 1
	done
	for package in "$work"/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$package" >"$work/tar" &&
			tar -x -C "$to" --keep-directory-symlink --no-same-owner --exclude=./etc --exclude=./var \
				--exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' -f "$work/tar" || return 1
	done
}

if ! unpack; then
	rm -rf "$to"
	give_up "the packages of lab/$name.txt could not be fetched from $from"
fi
(cd "$work/archives" && ls -- *.deb) >"$to/packages"
cp "$name.txt" "$to/$name.txt" # last: it says that all is there
