#!/bin/sh
# Puts the Python packages of python.txt into a virtual environment of the
# project's own, build/python; nothing is done where they are there already.
set -eu
cd "$(dirname "$0")"
to=../build/python

cmp -s python.txt "$to/python.txt" && exit 0
python=/usr/bin/python3
[ -x "$python" ] || python=python3

echo "needs: making $to"
rm -rf "$to"
if ! { mkdir -p ../build && "$python" -m venv "$to" && "$to/bin/pip" install --quiet --disable-pip-version-check --no-input -r python.txt; }; then
	rm -rf "$to"
	echo "needs: the Python packages of lab/python.txt could not be installed"
	echo "needs: tests that use them are skipped (WEIR_REQUIRE=all makes them fail instead)"
	exit 0
fi
cp python.txt "$to/python.txt" # last: it says that all is there
