#!/bin/sh
# Runs the program of HTCondor that this file is called as inside the pool, in the
# folder where it is called: paths mean the same there.
exec nsenter --target "$(cat '{{.Dir}}/pid')" {{if not .Root}}--user --preserve-credentials {{end}}--mount --pid --wdns="$PWD" \
	/usr/bin/unshare --user --map-user={{.UID}} --map-group={{.GID}} \
	/usr/bin/env PATH=/usr/bin:/usr/sbin LC_ALL=C.UTF-8 CONDOR_CONFIG='{{.Dir}}/condor_config' "${0##*/}" "$@"
