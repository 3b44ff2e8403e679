package bench

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab/labtest"
)

var (
	weirFlag   = flag.String("weir", "", "absolute `PATH` of the weir to measure (default: it is built)")
	roundsFlag = flag.Int("rounds", 5, "how often each comparison is repeated")
)

func TestMain(m *testing.M) {
	if beChild() {
		return
	}
	flag.Parse()
	if err := flag.Set("test.benchtime", "1x"); err != nil { // a round is one run of each side
		panic(err)
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		left, _ := filepath.Glob(filepath.Join(memoryDir(), folderPrefix()+"*")) // the pattern is right
		for _, dir := range left {                                               // GBs of memory
			_ = os.RemoveAll(dir)
		}
		os.Exit(130)
	}()
	os.Exit(m.Run())
}

// beChild runs the program of a child process that a case has started. It returns false if this
// process is not such a child.
func beChild() bool {
	if len(os.Args) < 2 {
		return false
	}
	child := map[string]func(args []string, out io.Writer) error{
		bareWord: runBare, controllerWord: runController, crowdWord: runCrowd, loadedWord: runLoaded, moverWord: runMover,
		tlsWord: runTLS, limitWord: runLimit, copyLimitWord: runCopyLimit,
	}[os.Args[1]]
	if child == nil {
		return false
	}
	if err := child(os.Args[2:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
	return true
}

// A metric is a quantity that is measured.
type metric struct {
	name   string
	unit   string  // in the output of go test -bench; times scale it is the base unit
	scale  float64 // of the value shown: base unit times scale
	suffix string  // of the value shown, on the page
}

// Throughput is payload; CPU is user and system time, the start of the program included; GB is 10^9 bytes.
var (
	throughput = metric{"throughput", "GB/s", 1e-9, " GB/s"}
	clientCPU  = metric{"client CPU per GB", "client-cpu-s/GB", 1, " s"}
	serverCPU  = metric{"server CPU per GB", "server-cpu-s/GB", 1, " s"}
	serverBusy = metric{"server cores busy", "server-cores", 1, ""}
	rate       = metric{"requests/s", "requests/s", 1, ""}
	requestCPU = metric{"client CPU per request", "client-cpu-us/request", 1e6, " us"}
	resident   = metric{"resident per client", "KiB/client", 1. / 1024, " KiB"}
	startTime  = metric{"start of all", "start-s", 1, " s"}
	lateMedian = metric{"late, p50", "late-p50-ms", 1e3, " ms"}
	lateHigh   = metric{"late, p99", "late-p99-ms", 1e3, " ms"}
	opTime     = metric{"time per operation", "op-ns", 1e9, " ns"}
	allocs     = metric{"allocations per operation", "allocations", 1, ""}
	clients    = metric{"clients", "clients", 1, ""}
	processes  = metric{"processes", "processes", 1, ""}
	failed     = metric{"failed operations", "failed", 1, ""}
)

// figures are the measurements of one run of a side, in base units.
type figures map[metric]float64

// A side is one of the programs that are compared.
type side struct {
	name string
	run  func() (figures, error)
}

// A bar is a condition that a case must meet: the metric of side a, divided by the metric of side b
// if b is set, is at most or at least a limit.
type bar struct {
	metric metric
	a, b   string
	least  bool // at least; else at most
	limit  float64
	why    string // the explanation for readers if it is not met
}

// ratio returns the value that is compared with the limit in one round.
func (b bar) ratio(round map[string]figures) float64 {
	v := round[b.a][b.metric]
	if b.b != "" {
		v /= round[b.b][b.metric]
	}
	return v
}

func (b bar) met(v float64) bool {
	if b.least {
		return v >= b.limit
	}
	return v <= b.limit
}

// A comparison is one case.
type comparison struct {
	name    string
	title   string
	about   string // the description of the programs and their settings, for the page
	metrics []metric
	bars    []bar
	rounds  int // at most, for cases that take minutes; 0: -rounds
	// setup starts the servers that all rounds share. The rig's Cleanup stops them.
	setup func(r *rig) []side
}

// cases returns all comparisons, in the order of the page.
func cases(s scale) []comparison {
	return []comparison{
		download(1, s), download(64, s),
		secureDownload(1, "TLSv1.3", s), secureDownload(64, "TLSv1.3", s), secureDownload(1, "TLSv1.2", s), secureUpload(s),
		secureSessions(s), sleepingSecured(s), small(64, true), small(1000, true),
		upload(1, false, s), upload(16, false, s), upload(1, true, s), upload(16, true, s),
		small(64, false), small(1000, false),
		builtin(1, "curl", s), builtin(1, "weir", s), builtin(64, "weir", s),
		sleeping(s), starting(s), waking(s), many(s),
		rootDownload(1, s), rootDownload(8, s), rootFresh(s), rootSmall("read"), rootSmall("stat"), rootUpload(s),
		rootMemory(s), secureRootDownload(s),
		ftpDownload(1, s), ftpDownload(4, s), ftpSmall(s),
		pages("http", 1, s), pages("http", 50, s), pages("root", 1, s), pages("root", 50, s),
		computing(400, true, s), computing(1000, false, s), jobsMemory(s),
		metering(), analyzing(s),
		moving(s), movingSmall(s), receiving(false, s), receiving(true, s), buffering(false, s), buffering(true, s),
		serving(s), servingSmall(s), queued(s), crowded(s), jobsCase(s), polling(s),
		crowds(s), worker(s), pool(s), merging(s), analyzingWide(s),
	}
}

// BenchmarkPeers measures every case. With -short the cases are small and have one round.
func BenchmarkPeers(b *testing.B) {
	s, rounds := fullScale(), *roundsFlag
	if testing.Short() {
		s, rounds = quickScale(), 1
	}
	weir := buildWeir(b)
	printConfig(b.Context(), weir)
	for _, c := range cases(s) {
		b.Run(c.name, func(b *testing.B) {
			r := newRig(b, weir, s)
			sides := c.setup(r)
			n := rounds
			if c.rounds > 0 {
				n = min(n, c.rounds)
			}
			for round := range n {
				order := slices.Clone(sides)
				if round%2 == 1 { // a machine that warms up or slows down favors no side
					slices.Reverse(order)
				}
				for _, s := range order {
					awaitPorts()
					b.Run(fmt.Sprintf("%s/round=%d", s.name, round+1), func(b *testing.B) { benchmarkSide(b, s) })
				}
			}
		})
	}
}

func benchmarkSide(b *testing.B, s side) {
	f, err := s.try(b)
	require.NoError(b, err)
	b.ReportMetric(0, "ns/op") // it would include the preparation of a side
	for m, v := range f {
		b.ReportMetric(v*m.scale, m.unit)
	}
}

// try runs a side, and up to twice more if it fails: a starved machine may miss a run or two.
func (s side) try(tb testing.TB) (f figures, err error) {
	for range 3 {
		if f, err = s.run(); err == nil || tb.Context().Err() != nil {
			break
		}
		tb.Logf("%s: %v", s.name, err)
	}
	return f, err
}

// buildWeir returns the weir of -weir, or builds one.
func buildWeir(tb testing.TB) string {
	if *weirFlag != "" {
		return *weirFlag
	}
	weir := filepath.Join(tb.TempDir(), "weir")
	if out, err := exec.CommandContext(tb.Context(), "go", "build", "-o", weir, "weir/cmd/weir").CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	return weir
}

// Every case yields every figure that its table and its bars need. The values are not tested: no
// test may depend on the speed of a machine.
func TestQuick(t *testing.T) {
	tier.Full(t, "the benchmarks, shortened")
	tier.Slow(t, "takes half a minute")
	labtest.Need(t, "curl", "wrk", "iperf3", "nginx", "xrootd", "xrdcp", "globus-gridftp-server", "globus-url-copy", "wget", "condor_master",
		"gfal-copy", "rclone", "postgres", "initdb", "pg_isready")
	weir := buildWeir(t)
	var found []result
	for _, c := range cases(quickScale()) {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, weir, quickScale())
			res := result{comparison: c, rounds: []map[string]figures{{}}}
			for _, s := range c.setup(r) {
				f, err := s.try(t)
				if err != nil {
					t.Fatalf("%s: %v", s.name, err)
				}
				res.sides = append(res.sides, s.name)
				res.rounds[0][s.name] = f
			}
			res.check(t)
			found = append(found, res)
		})
	}
	p := page{short: true}
	for _, r := range found {
		p.cases = append(p.cases, r.section())
	}
	text := p.render("")
	for _, c := range found {
		if !strings.Contains(text, "### "+c.title+"\n") {
			t.Errorf("the page does not show %s", c.title)
		}
	}
	if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Errorf("the page has figures that are not numbers:\n%s", text)
	}
}

// check fails the test if a bar or a column of the table has no figure, or an impossible figure.
// The CPU time of a server is counted in hundredths of a second, and a few clients may cost no page
// of memory: these metrics may be 0.
func (r result) check(t *testing.T) {
	for _, b := range r.bars {
		if v := r.judge(b).median; b.metric != serverCPU && (math.IsNaN(v) || math.IsInf(v, 0)) {
			t.Errorf("%s: no figure: %v", b.what(), v)
		}
	}
	mayBeZero := []metric{serverCPU, serverBusy, failed, allocs, resident}
	for _, m := range r.metrics {
		some := false
		for _, s := range r.sides {
			for _, v := range r.values(s, m) {
				some = true
				if v < 0 && m != resident || v == 0 && !slices.Contains(mayBeZero, m) || math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("%s: %s is %v", s, m.name, v)
				}
			}
		}
		if !some {
			t.Errorf("no side has %s", m.name)
		}
	}
}

// Names of cases and sides survive the output of go test, in which blanks become underscores. Each
// metric has a unit of its own.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range cases(fullScale()) {
		for _, m := range c.metrics {
			if metricOf(m.unit) != m {
				t.Errorf("%s: the unit %q stands for another metric", m.name, m.unit)
			}
		}
		if seen[c.name] || strings.ContainsAny(c.name, " _/") {
			t.Errorf("%q: twice, or not a name", c.name)
		}
		seen[c.name] = true
		t.Log(c.name) // a test of docs/scale.md looks for the names that the page has
	}
}
