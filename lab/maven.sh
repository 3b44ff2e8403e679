#!/bin/sh
# maven.sh NAME puts the file of NAME.txt into build/NAME: Maven coordinates and the SHA-256 that the file must have. Maven fetches it
# from the repository of its own configuration. A tar.gz is unpacked, without its first folder, and then a line "# build: COMMAND" is
# run there. Nothing is done where it is there already.
set -eu
cd "$(dirname "$0")"
name=$1
to=../build/$name

cmp -s "$name.txt" "$to/$name.txt" && exit 0

give_up() {
	rm -rf "$to"
	echo "needs: no $name for the lab: $1"
	echo "needs: tests that use it are skipped (WEIR_REQUIRE=all makes them fail instead)"
	exit 0
}

command -v mvn >/dev/null || give_up "mvn, which fetches it, is not here"
echo "needs: fetching $to"
rm -rf "$to"
mkdir -p "$to"
set -- $(grep -v '^#' "$name.txt")
mvn --batch-mode --quiet org.apache.maven.plugins:maven-dependency-plugin:2.8:copy "-Dartifact=$1" "-DoutputDirectory=$PWD/$to" </dev/null ||
	give_up "mvn could not fetch $1"
file=$(ls "$to"/*)
echo "$2  $file" | sha256sum --check --quiet || { rm -rf "$to"; exit 1; }
case $file in *.tar.gz)
	tar -x -z -C "$to" --strip-components=1 --no-same-owner -f "$file"
	rm "$file"
	build=$(sed -n 's/^# build: //p' "$name.txt")
	[ -z "$build" ] || (cd "$to" && sh -c "$build") >"$to/build.log" 2>&1 || { cat "$to/build.log"; give_up "'$build' failed"; }
	;;
esac
cp "$name.txt" "$to/$name.txt" # last: it says that all is there
