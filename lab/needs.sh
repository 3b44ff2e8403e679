#!/bin/sh
# Installs what the tests use, and prints the seconds of each step that had something to do. `needs.sh` installs the first tier:
# Debian packages, Python packages, HTCondor and an S3 service. `needs.sh full` adds the full tier: more Debian packages, the
# other versions of XRootD, further FTP and S3 servers, schemathesis, a broker and an issuer in Java, and Kubernetes.
set -eu
cd "$(dirname "$0")"

step() {
	begin=$(date +%s)
	sh "$@"
	seconds=$(($(date +%s) - begin))
	[ $seconds -lt 2 ] || echo "needs: $* took $seconds s"
}

step packages.sh ${1-}
step python.sh python
step python.sh fts
step unpack.sh condor
step build.sh versitygw
[ "${1-}" = full ] || exit 0
for each in xrootd-*.txt; do step unpack.sh "$(basename "$each" .txt)"; done
for each in vsftpd pure-ftpd; do step unpack.sh $each; done
step python.sh schemathesis
for each in s3proxy artemis keycloak; do step maven.sh $each; done
step build.sh kubernetes
