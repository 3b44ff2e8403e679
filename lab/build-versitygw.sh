#!/bin/sh
# Builds the S3 gateway of Versity, as lab/versitygw/go.mod names it, into build/versitygw, from the modules of the Go proxy.
# Nothing is done where it is there already.
set -eu
cd "$(dirname "$0")/versitygw"
to=$PWD/../../build/versitygw
cmp -s go.mod "$to/versitygw.txt" && exit 0
command -v go >/dev/null || exit 0
echo "needs: building build/versitygw"
mkdir -p "$to"
CGO_ENABLED=0 GOWORK=off go build -trimpath -ldflags "-s -w" -o "$to/" github.com/versity/versitygw/cmd/versitygw
cp go.mod "$to/versitygw.txt" # last: it says that all is there
