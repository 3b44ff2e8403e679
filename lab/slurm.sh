# The first process of a Slurm, in namespaces of mounts and processes that end
# with it: it keeps the daemons, and ends when one of them does.
# usage: sh -c SCRIPT slurm DIR MUNGED SLURMCTLD SLURMD [UNSHARE UID GID]
set -eu
dir=$1 munged=$2 slurmctld=$3 slurmd=$4
mount --make-rslave / # what is mounted here is nobody else's
mount -t proc proc /proc

# Where a plain user started it, this script is root in its namespaces only, and the daemons are that user again.
as=
[ $# -lt 7 ] || as="$5 --user --map-user=$6 --map-group=$7"
keep() {
	$as "$@" || echo "$1 ended: $?"
	kill -TERM 1
}
trap 'exit 1' TERM
keep "$munged" --foreground --force --num-threads=4 --key-file="$dir/munge.key" --socket="$dir/munge.sock" \
	--pid-file="$dir/run/munged.pid" --log-file="$dir/log/munged" --seed-file="$dir/run/munge.seed" &
until [ -S "$dir/munge.sock" ]; do
	sleep 0.02
done
export SLURM_CONF="$dir/slurm.conf"
keep "$slurmctld" -D &
keep "$slurmd" -D -N weir &
wait
