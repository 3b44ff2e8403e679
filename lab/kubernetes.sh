# The first process of a node of Kubernetes, in namespaces of mounts and processes
# that end with it: it keeps containerd and kubelet, and ends when one of them does.
# usage: sh -c SCRIPT kubernetes DIR CGROUP CONTAINERD CTR KUBELET NODE
set -eu
dir=$1/node cgroup=$2 containerd=$3 ctr=$4 kubelet=$5 node=$6
mount --make-rslave / # what is mounted here is nobody else's
mount -t proc proc /proc

# What they write outside of their folder goes to it as well.
for at in run var/lib var/log; do
	mkdir -p "$dir/over/$at" "$dir/work/$at"
	mount -t overlay overlay -o "lowerdir=/$at,upperdir=$dir/over/$at,workdir=$dir/work/$at" "/$at"
done

# Where their sockets are: the names of these may have 104 bytes only.
mkdir -p /run/containerd /var/lib/kubelet "$dir/kubelet"
mount -t tmpfs tmpfs /run/containerd
mount --bind "$dir/kubelet" /var/lib/kubelet

# The kubelet sets these for the whole machine unless they are so already: it sees them so.
mkdir "$dir/settings"
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 \
	kernel/keys/root_maxbytes=25000000; do
	path=${setting%=*} file="$dir/settings/${setting##*/}"
	[ -e "/proc/sys/$path" ] || continue
	echo "${setting#*=}" >"$file"
	mount --bind "$file" "/proc/sys/$path"
done

# Control groups of version 2, or one for each controller of version 1.
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
	for controller in cpuset cpu io memory pids hugetlb; do
		echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control || true
	done
	mkdir "/sys/fs/cgroup/$cgroup"
else
	for controller in /sys/fs/cgroup/*/; do
		mkdir -p "$controller$cgroup"
	done
fi

keep() {
	"$@" || echo "$1 ended: $?"
	kill -TERM 1
}
trap 'exit 1' TERM
keep "$containerd" --config "$dir/containerd.toml" --log-level warn &
tries=0
until "$ctr" version >/dev/null 2>&1; do
	tries=$((tries + 1))
	[ "$tries" -lt 600 ] || exit 1
	sleep 0.1
done
for image in pause weir; do
	"$ctr" --namespace k8s.io images import "$dir/$image.tar" >/dev/null
	rm "$dir/$image.tar"
done
: >"$dir/run/kubelet"
keep "$kubelet" --config="$dir/kubelet.yaml" --kubeconfig="${dir%/node}/kubelet.conf" --cert-dir="$dir/pki" \
	--hostname-override="$node" --v=1 &
wait
