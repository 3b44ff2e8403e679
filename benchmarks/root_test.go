package bench

import (
	"fmt"
	"strings"
	"time"
)

// plainXrdcp makes xrdcp read and write without page checksums.
const plainXrdcp = "XRD_CPUSEPGWRTRD=0"

// A shape is a variant of weir in a comparison: its name, and the settings that differ from the
// defaults.
type shape struct{ name, work string }

func (r *rig) shapes(l load, group int, all ...shape) []side {
	var sides []side
	for _, s := range all {
		l.more = s.work
		one := r.weirSide(l, group)
		one.name = s.name
		sides = append(sides, one)
	}
	return sides
}

// allVerified is the name of weir if it verifies the checksums of all files.
const allVerified = "weir, all verified"

// readShapes returns the variants of weir that are compared with xrdcp. The first variant has only
// defaults.
func readShapes() []shape {
	return []shape{
		{"weir", ""},
		{allVerified, "  verify: 100%\n  checksum: crc32c\n"},
		{"weir, plain", "  plain: true\n"},
	}
}

func rootDownload(streams int, s scale) comparison {
	size := 8 * s.size
	b := comparison{
		name:  fmt.Sprintf("root-download-%d", streams),
		title: fmt.Sprintf("root:// download, %s", streamsText(streams)),
		about: fmt.Sprintf("A %d MiB file from XRootD. Like xrdcp, weir sends page reads of 8 MiB, 4 at once. It verifies the page checksums "+
			"of 1%% or all (\"all verified\"), or requests none (\"plain\"; xrdcp with %s). xrdcp: %s.",
			size>>20, plainXrdcp, processText(streams)),
		metrics: []metric{throughput, clientCPU, serverCPU, serverBusy},
		bars: []bar{
			{metric: clientCPU, a: allVerified, b: "xrdcp", limit: 1. / 3},
		},
		setup: func(r *rig) []side {
			srv := r.xrootd(1, size)
			l := r.reads(srv, theFile, streams)
			l.hold *= 3 // with page checksums a file takes a second
			sides := r.shapes(l, srv.group, readShapes()...)
			sides = append(sides,
				r.xrdcpReads("xrdcp", srv, size, streams),
				r.xrdcpReads("xrdcp, plain", srv, size, streams, plainXrdcp))
			op := "read"
			if streams > 1 {
				op = "pages"
			}
			return append(sides, r.limitSide(op, srv.url+"/"+theFile, "", 4*streams, size, streams))
		},
	}
	if streams == 1 {
		b.bars = append(b.bars, bar{metric: clientCPU, a: "weir", b: "xrdcp", limit: 1. / 25},
			bar{metric: clientCPU, a: "weir, plain", b: "xrdcp, plain", limit: 1. / 10},
			bar{metric: throughput, a: "weir, plain", b: "xrdcp, plain", least: true, limit: 1},
			bar{metric: throughput, a: "weir, plain", b: systemCalls, least: true, limit: .9})
	} else {
		b.bars = append(b.bars, bar{metric: clientCPU, a: "weir", b: "xrdcp", limit: 1. / 12},
			bar{metric: clientCPU, a: "weir", b: systemCalls, limit: 1.1},
			bar{metric: throughput, a: "weir", b: systemCalls, least: true, limit: .9},
			bar{metric: throughput, a: "weir, plain", b: "xrdcp, plain", least: true, limit: 2})
	}
	return b
}

func processText(n int) string {
	if n == 1 {
		return "several times in a row"
	}
	return fmt.Sprintf("%d processes at once", n)
}

// xrdcpReads copies theFile to /dev/null with a number of xrdcp processes at once.
func (r *rig) xrdcpReads(name string, srv server, size int64, streams int, env ...string) side {
	files := max(4, streams)
	script := fmt.Sprintf("seq %d | xargs -P %d -I{} env %s xrdcp --force --silent %s/%s /dev/null", files, streams, strings.Join(env, " "),
		srv.url, theFile)
	return r.script(name, files, int64(files)*size, srv.group, script)
}

func rootFresh(s scale) comparison {
	const size = 1 << 20
	files := max(200, s.puts*2)
	return comparison{
		name:  "root-fresh",
		title: "root:// files of 1 MiB, a fresh session each",
		about: fmt.Sprintf("Connect, log in, open, read, close: 100 concurrent xrdcp processes for %d files, and 100, 1000 and 2000 clients "+
			"in one process with the same page reads.", files),
		metrics: []metric{rate, requestCPU, throughput, serverBusy, failed},
		bars: []bar{
			{metric: rate, a: "weir, 100, plain", b: "xrdcp, 100, plain", least: true, limit: 25},
			{metric: rate, a: "weir, 100", b: "xrdcp, 100", least: true, limit: 10}, // page checksums keep the server's cores busy
			{metric: serverBusy, a: "weir, 100", least: true, limit: 1.5},
			{metric: requestCPU, a: "weir, 100, plain", b: "xrdcp, 100, plain", limit: 1. / 40},
			{metric: requestCPU, a: "weir, 100", b: "xrdcp, 100", limit: 1. / 40},
			{metric: rate, a: "weir, 1000, plain", least: true, limit: 5000},
			{metric: serverBusy, a: "weir, 1000", least: true, limit: 1.5},
			{metric: failed, a: "weir, 2000", limit: 0},
		},
		setup: func(r *rig) []side {
			srv := r.xrootd(64, size)
			var sides []side
			for _, c := range []struct {
				clients int
				name    string
				work    string
			}{{100, "weir, 100", ""}, {100, "weir, 100, plain", "  plain: true\n"}, {1000, "weir, 1000", ""},
				{1000, "weir, 1000, plain", "  plain: true\n"}, {2000, "weir, 2000", ""}} {
				l := r.reads(srv, "", min(c.clients, r.clients))
				l.settle = 500 * time.Millisecond
				sides = append(sides, r.shapes(l, srv.group, shape{c.name, "  session: fresh\n" + c.work})...)
			}
			for _, c := range []struct{ name, env string }{{"xrdcp, 100", ""}, {"xrdcp, 100, plain", plainXrdcp}} {
				script := fmt.Sprintf("seq %d | awk '{printf \"%s/file%%06d.dat\\n\", $1 %% 64}' | xargs -P 100 -I{} env %s xrdcp --force "+
					"--silent {} /dev/null", files, srv.url, c.env)
				sides = append(sides, r.script(c.name, files, int64(files)*size, srv.group, script))
			}
			return sides
		},
	}
}

func rootSmall(op string) comparison {
	what := map[string]string{"read": "reads of 4 KiB of open files", "stat": "stats"}[op]
	return comparison{
		name:  "root-" + op,
		title: "root:// " + what + ", 100 kept sessions",
		about: "100 clients in one process, each with a session and an open file. Reads are plain (kXR_read). " +
			"On a machine where the bare loop cost 3.60 us, the ratio of CPU was 1.34 x.",
		metrics: []metric{rate, requestCPU, serverBusy},
		bars: []bar{
			{metric: rate, a: "weir", b: "bare", least: true, limit: 1 / 1.3},
			{metric: requestCPU, a: "weir", b: "bare", limit: 1.3},
		},
		setup: func(r *rig) []side {
			srv := r.xrootd(8, 1<<20)
			l := r.reads(srv, "", 100)
			l.settle = 500 * time.Millisecond
			work := "  part: {size: 4KiB}\n  keep_open: true\n  plain: true\n"
			if op == "stat" {
				l.kind, work = "metadata", "  mix: {stat: 1}\n"
			}
			return append(r.shapes(l, srv.group, shape{"weir", work}), r.bareSide(srv, op, 100, "-for", r.hold.String()))
		},
	}
}

func rootUpload(s scale) comparison {
	size := 2 * s.size
	return comparison{
		name:    "root-upload",
		title:   "root:// upload, one stream",
		about:   fmt.Sprintf("Files of %d MiB to XRootD.", size>>20),
		metrics: []metric{throughput, clientCPU, serverCPU, serverBusy},
		bars: []bar{
			{metric: clientCPU, a: "weir, plain", b: "xrdcp, plain", limit: 1. / 4},
			{metric: clientCPU, a: "weir", b: "xrdcp", limit: 1. / 4},
		},
		setup: func(r *rig) []side {
			srv := r.xrootd(0, 0)
			source := r.path("source")
			r.file(source, size)
			l := load{target: srv.url, kind: "write", size: size, clients: "1", settle: 200 * time.Millisecond, hold: r.hold, most: 5 << 30}
			sides := r.shapes(l, srv.group, shape{"weir", ""}, shape{"weir, plain", "  plain: true\n"})
			const files = 8
			for _, c := range []struct{ name, env string }{{"xrdcp", ""}, {"xrdcp, plain", plainXrdcp}} {
				script := fmt.Sprintf("for i in $(seq %d); do env %s xrdcp --force --silent %s %s/copy-$((i %% 2)) || exit; done", files, c.env,
					source, srv.url)
				sides = append(sides, r.script(c.name, files, files*size, srv.group, script))
			}
			return sides
		},
	}
}

func rootMemory(s scale) comparison {
	return comparison{
		name:  "root-memory",
		title: "root:// memory of a client",
		about: fmt.Sprintf("%d clients in one process, each with a session, measured as in [memory of a client](#memory-of-a-client).",
			s.clients),
		metrics: []metric{clients, resident, rate, failed},
		bars:    []bar{{metric: resident, a: "weir", limit: 8 << 10}, {metric: failed, a: "weir", limit: 0}},
		setup: func(r *rig) []side {
			srv := r.xrootd(1, 64<<10)
			return []side{r.memorySide(srv)}
		},
	}
}
