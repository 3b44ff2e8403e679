#!/bin/sh
# Builds the programs that lab/$1/go.mod names as tools into build/$1, from the modules of the Go proxy. Nothing is done where they are
# there already. Kubernetes takes 11 minutes of CPU time, 390 MB, and about 4 GB in the caches of Go; versitygw 3 minutes and 45 MB.
set -eu
cd "$(dirname "$0")/$1"
to=$PWD/../../build/$1
cmp -s go.mod "$to/$1.txt" && exit 0
if [ "$(uname -s)" != Linux ] || ! command -v go >/dev/null; then
	echo "needs: no $1 for the lab, which is built with Go and runs on Linux: tests that use it are skipped (WEIR_REQUIRE=all makes them fail instead)"
	exit 0
fi
echo "needs: building build/$1"
flags="-s -w"
if [ "$1" = kubernetes ]; then
	version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
	minor=${version#v1.}
	in=k8s.io/component-base/version
	flags="$flags -X $in.gitVersion=$version -X $in.gitMajor=1 -X $in.gitMinor=${minor%%.*}"
fi
mkdir -p "$to"
CGO_ENABLED=0 GOWORK=off go build -trimpath -o "$to/" -ldflags "$flags" tool
cp go.mod "$to/$1.txt" # last: it says that all is there
