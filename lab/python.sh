#!/bin/sh
# Puts the Python packages of NAME.txt into a virtual environment of the
# project's own, build/NAME; nothing is done where they are there already.
set -eu
cd "$(dirname "$0")"
name=$1
to=../build/$name

cmp -s "$name.txt" "$to/$name.txt" && exit 0
python=/usr/bin/python3
[ -x "$python" ] || python=python3

echo "needs: making $to"
rm -rf "$to"
if ! { mkdir -p ../build && "$python" -m venv "$to" && "$to/bin/pip" install --quiet --disable-pip-version-check --no-input -r "$name.txt"; }; then
	rm -rf "$to"
	echo "needs: the Python packages of lab/$name.txt could not be installed"
	echo "needs: tests that use them are skipped (WEIR_REQUIRE=all makes them fail instead)"
	exit 0
fi
cp "$name.txt" "$to/$name.txt" # last: it says that all is there
