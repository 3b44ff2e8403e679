package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"weir/transfer/trial"
)

// The metrics of the whole service. Metrics named known exclude the cost of registering the dataset
// with its checksums.
var (
	knownRate  = metric{"throughput, registered before", "registered-GB/s", 1e-9, " GB/s"}
	knownCPU   = metric{"CPU per GB, registered before", "registered-cpu-s/GB", 1, " s"}
	knownFiles = metric{"files/s, registered before", "registered-files/s", 1, ""}
	filesRate  = metric{"files/s", "files/s", 1, ""}
	filesCPU   = metric{"CPU per file, client and server", "cpu-us/file", 1e6, " us"}
)

// serviceName is the dataset that services copy.
const serviceName = "/run"

// agentState is the folder that an agent keeps in the folder of its site.
const agentState = ".weir-serve-agent"

// serving compares copies of a dataset by the whole service.
func serving(s scale) comparison {
	const files = 10
	size := 8 * s.size
	b := comparison{
		name:   "service-large",
		rounds: 3,
		title:  "A dataset of large files by the whole service, adler32 verified at both ends",
		about: fmt.Sprintf("%d files of %d MiB (two contents), to a new folder, three rounds. weir: `weir dataset add`, which computes the "+
			"checksums, and `weir transfer submit --wait`, between two agents over loopback. CPU is that of agents, coordinator and "+
			"commands; \"registered before\" excludes the first command. The others as in [copies of large "+
			"files](#copies-of-large-files-adler32-verified-at-both-ends), xrdcp in %d processes and rclone with %d transfers from `weir "+
			"serve`, from `rclone serve webdav` (\"both ends\"), and followed by rclone check --download, which compares the content "+
			"(\"verified\").", files, size>>20, together, together),
		metrics: []metric{throughput, bothCPU, knownRate, knownCPU},
	}
	b.bars = copyBars(knownRate, knownCPU, "xrdcp", "gfal-copy", "rclone, verified", "rclone, both ends", "rclone")
	b.setup = func(r *rig) []side {
		src := r.source(files, size, 2)
		door := r.serve(filepath.Join(src, serviceName))
		x := r.xrootd(0, 0)
		list := r.linkAll(filepath.Join(src, serviceName), x.data)
		r.sumAll(x, files)
		theirs := r.rcloneServe(filepath.Join(src, serviceName))
		all := files * size
		return []side{
			r.serviceSide(src, all, files),
			r.copySide("xrdcp", x.group, all, files, false, xrdcps(x, list)),
			r.copySide("gfal-copy", x.group, all, files, false, gfals(x, list)),
			r.rcloneSide("rclone", door, all, files, together),
			r.rcloneSide("rclone, both ends", theirs, all, files, together),
			r.rcloneSide("rclone, verified", door, all, files, together, "check", "--download"),
			r.limitCopySide(door, list, all, files, together, false),
		}
	}
	return b
}

// servingSmall compares copies of many small files by the whole service.
func servingSmall(s scale) comparison {
	files, at := 10_000, 16
	if s.size < 64<<20 {
		files = 300
	}
	const size = 64 << 10
	return comparison{
		name:   "service-small",
		title:  "A dataset of many small files by the whole service",
		rounds: 2,
		about: fmt.Sprintf("%d files of %d KiB, %d at a time, to a new folder, two rounds. weir: as above, with --link-min and --link-max "+
			"%d. rclone copy --transfers %d from `weir serve`, limited by its pacer to 100 requests/s, compares sizes.",
			files, size>>10, at, at, at),
		metrics: []metric{filesRate, filesCPU, knownFiles},
		bars:    []bar{{metric: filesRate, a: "weir", b: "rclone", least: true, limit: 3}},
		setup: func(r *rig) []side {
			src := r.source(files, size, files)
			door := r.serve(filepath.Join(src, serviceName))
			all := int64(files) * size
			n := strconv.Itoa(at)
			return []side{r.serviceSide(src, all, files, "--link-min", n, "--link-max", n), r.rcloneSide("rclone", door, all, files, at)}
		},
	}
}

// source makes the folder of a site with a dataset of n files; different is the number of distinct
// contents.
func (r *rig) source(n int, size int64, different int) string {
	dir := r.path("source")
	to := filepath.Join(dir, serviceName)
	r.must(os.MkdirAll(to, 0o755))
	for i := range n {
		name := filepath.Join(to, fileName(i))
		if i < different {
			r.file(name, size)
		} else {
			r.must(os.Link(filepath.Join(to, fileName(i%different)), name))
		}
	}
	return dir
}

// linkAll links the files of a folder into another folder, and returns the path of a file with
// their names and sizes.
func (r *rig) linkAll(from, to string) (list string) {
	files, err := os.ReadDir(from)
	r.must(err)
	var names []byte
	for _, f := range files {
		r.must(os.Link(filepath.Join(from, f.Name()), filepath.Join(to, f.Name())))
		info, err := f.Info()
		r.must(err)
		names = fmt.Appendf(names, "%s %d\n", f.Name(), info.Size())
	}
	list = r.path("names.list")
	r.must(os.WriteFile(list, names, 0o644))
	return list
}

// serviceSide runs a service that copies the dataset of a folder to another folder.
func (r *rig) serviceSide(src string, bytes int64, files int, coordinator ...string) side {
	return side{"weir", func() (f figures, err error) {
		dir, remove, err := r.fresh(false)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, remove()) }()
		t, err := trial.Start(r.Context(), trial.Options{Program: []string{r.weir}, Dir: dir,
			Sites: []trial.Site{{Name: "A", Root: src}, {Name: "B"}}, Coordinator: coordinator})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, t.Close(), os.RemoveAll(filepath.Join(src, agentState))) }()
		return r.serviceRun(t, bytes, files)
	}}
}

// serviceRun measures both commands, including the work of the coordinator and the agents.
func (r *rig) serviceRun(t *trial.Trial, bytes int64, files int) (figures, error) {
	added, err := r.command(t, "dataset", "add", serviceName, "--site", "A", "--path", serviceName[1:])
	if err != nil {
		return nil, err
	}
	if err := r.touch(bytes); err != nil {
		return nil, err
	}
	moved, err := r.command(t, "transfer", "submit", serviceName, "--to", "B", "--approve", "--wait", "--quiet")
	if err != nil {
		return nil, err
	}
	if there, err := os.ReadDir(filepath.Join(t.Root("B"), serviceName)); err != nil || len(there) != files {
		return nil, errors.Join(fmt.Errorf("%d files have arrived, not %d", len(there), files), err)
	}
	gb, n := float64(bytes)/1e9, float64(files)
	wall, cpu := (added.wall + moved.wall).Seconds(), (added.cpu + moved.cpu).Seconds()
	return figures{
		throughput: float64(bytes) / wall, bothCPU: cpu / gb, filesRate: n / wall, filesCPU: cpu / n,
		knownRate: float64(bytes) / moved.wall.Seconds(), knownCPU: moved.cpu.Seconds() / gb, knownFiles: n / moved.wall.Seconds(),
	}, nil
}

// command runs a command of weir on a trial. The CPU time includes the CPU time of the service
// meanwhile.
func (r *rig) command(t *trial.Trial, args ...string) (u usage, err error) {
	before, err := trialCPU(t)
	if err != nil {
		return u, err
	}
	u, err = r.child(append([]string{"env", "WEIR_CONFIG=" + filepath.Join(t.Dir(), "coordinator.json"), r.weir}, args...)...)
	if err != nil {
		return u, err
	}
	after, err := trialCPU(t)
	u.cpu += after - before
	return u, err
}

// trialCPU returns the CPU time of all processes of a service so far.
func trialCPU(t *trial.Trial) (all time.Duration, err error) {
	for _, p := range []*trial.Process{t.Coordinator(), t.Site("A"), t.Site("B")} {
		if p == nil {
			continue
		}
		cpu, err := groupCPU(p.Pid())
		if err != nil {
			return 0, err
		}
		all += cpu
	}
	return all, nil
}

// sumAll makes XRootD compute the checksums of its n files and store them with the files, which
// belong to its user from then on. When XRootD computes a checksum over HTTP for the first time, it
// may respond with status 500 (its bridge forgets too late that it was computing); over root:// it
// does not.
func (r *rig) sumAll(x server, n int) {
	var owner syscall.Stat_t
	r.must(syscall.Stat(x.data, &owner))
	at := strings.TrimSuffix(x.url, "//data")
	for i := range n {
		r.must(os.Chown(filepath.Join(x.data, fileName(i)), int(owner.Uid), int(owner.Gid)))
		argv, err := withoutDNS(r.Context(), []string{"xrdfs", at, "query", "checksum", "/data/" + fileName(i)})
		r.must(err)
		_, err = r.child(argv...)
		r.must(err)
	}
}
