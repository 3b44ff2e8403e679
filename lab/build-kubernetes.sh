#!/bin/sh
# Builds Kubernetes, as lab/kubernetes/go.mod names it, into build/kubernetes, from the modules of the Go proxy.
# Nothing is done where it is there already. It takes 11 minutes of CPU time, 390 MB, and about 4 GB in the caches of Go.
set -eu
cd "$(dirname "$0")/kubernetes"
to=$PWD/../../build/kubernetes
cmp -s go.mod "$to/kubernetes.txt" && exit 0
if [ "$(uname -s)" != Linux ] || ! command -v go >/dev/null; then
	echo "needs: no Kubernetes for the lab, which is built with Go and runs on Linux: tests that use it are skipped (WEIR_REQUIRE=all makes them fail instead)"
	exit 0
fi
echo "needs: building build/kubernetes"
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${version#v1.}
in=k8s.io/component-base/version
mkdir -p "$to"
CGO_ENABLED=0 GOWORK=off go build -trimpath -o "$to/" \
	-ldflags "-s -w -X $in.gitVersion=$version -X $in.gitMajor=1 -X $in.gitMinor=${minor%%.*}" \
	k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager k8s.io/kubernetes/cmd/kube-scheduler \
	k8s.io/kubernetes/cmd/kubelet k8s.io/kubernetes/cmd/kubectl
cp go.mod "$to/kubernetes.txt" # last: it says that all is there
