package monitor

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/blockdevice"

	"weir/internal/require"
)

func fixture(t *testing.T) *local {
	t.Helper()
	l := newLocal(Host{}, Options{proc: "testdata/proc", sys: "testdata/sys"}, nil, steadyClock())
	t.Cleanup(l.close)
	return l
}

func TestCountersOfFixture(t *testing.T) {
	l := fixture(t)
	if problems := l.count(); len(problems) > 0 {
		t.Fatal(problems)
	}
	c := l.now
	want := &counters{
		cores: []coreTime{
			core(0, CPU{User: 11, System: 5, IRQ: 0.5, IOWait: 2, Steal: 0.2, Idle: 80}),
			core(2, CPU{User: 11, System: 5.5, IRQ: 0.5, IOWait: 0.5, Steal: 0.4, Idle: 80}),
		},
		load:      1.25,
		memory:    Memory{Total: 16384000 << 10, Available: 8192000 << 10, Swapped: 1024000 << 10},
		hasMemory: true,
		disks: []diskCount{
			disk("loop0", 40*512, 0, 5, 0.001, 0.001),
			disk("sda", 20000*512, 40000*512, 3000, 1.2, 2.5),
			disk("nvme0n1", 400*512, 480*512, 110, 0.02, 0.022),
			disk("xvda1", 56*512, 64*512, 15, 0.002, 0.002),
		},
		nets: []netCount{
			{name: "lo", received: 3193, sent: 3193, packetsIn: 29, packetsOut: 29},
			nic("eth0", 254717614, 1076410, 12593, 10752, 6, 1e10),
			{name: "eth0:1", received: 100, sent: 200, packetsIn: 1, packetsOut: 2},
			{name: "ifb0"},
		},
		tcp:    TCP{Retransmits: 99, Established: 17, ListenDrops: 5},
		hasTCP: true,
	}
	opts := cmp.Options{cmp.AllowUnexported(counters{}, coreTime{}, diskCount{}, netCount{}),
		cmpopts.IgnoreFields(counters{}, "at"), cmpopts.EquateApprox(0, 1e-9)}
	if diff := cmp.Diff(want, c, opts); diff != "" {
		t.Error(diff)
	}
}

// TestCountersAgreeWithProcfs reads this machine twice, by our parsers and by the library, which
// may differ only by the activity in between.
func TestCountersAgreeWithProcfs(t *testing.T) {
	lib, err := procfs.NewDefaultFS()
	if err != nil {
		t.Skip("no /proc here:", err)
	}
	l := newLocal(Host{}, Options{}, nil, newClock())
	defer l.close()
	if problems := l.count(); len(problems) > 0 {
		t.Fatal(problems)
	}
	st, err := lib.Stat()
	require.NoError(t, err)
	for _, c := range l.now.cores {
		have, want := total(&c.mode), libTotal(st.CPU[int64(c.id)])
		if math.Abs(have-want) > 10 || have == 0 {
			t.Errorf("core %d: %v s, the library has %v s", c.id, have, want)
		}
	}
	dev, err := lib.NetDev()
	require.NoError(t, err)
	for _, n := range l.now.nets {
		if grown := int64(dev[n.name].RxBytes) - n.received; grown < 0 || n.name == "" {
			t.Errorf("%s: the library read %d bytes less, later", n.name, -grown)
		}
	}
	mem, err := lib.Meminfo()
	require.NoError(t, err)
	if *mem.MemTotalBytes != uint64(l.now.memory.Total) {
		t.Errorf("memory %d, the library has %d", l.now.memory.Total, *mem.MemTotalBytes)
	}
	bfs, _ := blockdevice.NewDefaultFS()
	stats, err := bfs.ProcDiskstats()
	if err != nil {
		t.Skip("no disks here:", err)
	}
	for _, d := range l.now.disks {
		for _, s := range stats {
			if s.DeviceName == d.name && int64(s.ReadSectors*512) < d.read {
				t.Errorf("%s: the library read less, later", d.name)
			}
		}
	}
}

func libTotal(c procfs.CPUStat) float64 {
	return c.User + c.Nice + c.System + c.Idle + c.Iowait + c.IRQ + c.SoftIRQ + c.Steal
}

// TestPressure: the time for which tasks waited for a core, and kernels without that file.
func TestPressure(t *testing.T) {
	var before, now counters
	for c, text := range map[*counters]string{
		&before: "some avg10=4.23 avg60=35.40 avg300=49.88 total=1000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n",
		&now:    "some avg10=9.99 avg60=35.40 avg300=49.88 total=2500000\n",
	} {
		require.NoError(t, parsePressure([]byte(text), c))
	}
	now.at.mono = 2 * time.Second
	if s := now.since(&before); s.Waits == nil || *s.Waits != 0.75 {
		t.Errorf("%v", s.Waits)
	}
	if s := now.since(&counters{}); s.Waits != nil {
		t.Errorf("reported without a first look: %v", *s.Waits)
	}
	for _, text := range []string{"", "some\n", "full total=5\n", "some avg10=0.00 total=\n", "some total=many\n"} {
		if err := parsePressure([]byte(text), &now); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func TestBrokenFixtureGivesClearErrors(t *testing.T) {
	l := newLocal(Host{}, Options{proc: "testdata/broken", sys: "testdata/none"}, nil, steadyClock())
	defer l.close()
	s, err := l.look(context.Background())
	if s != nil || err == nil {
		t.Fatalf("a sample %v from nothing, error %v", s, err)
	}
	for _, want := range []string{"stat: times of a core in \"cpu0 one two\"", "loadavg: load in \"high\"",
		"meminfo: size in \"MemTotal: lots kB\"", "diskstats: counters of a disk", "net/dev: counters of an interface",
		"snmp: Tcp: has names without numbers", "netstat: ListenDrops is \"many\", no number"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

// TestPartsMissing removes files: the other parts are still reported, and the loss is reported
// once.
func TestPartsMissing(t *testing.T) {
	f := newFakeProc(t)
	for _, name := range []string{"diskstats", "net/netstat"} {
		require.NoError(t, os.Remove(filepath.Join(f.root, name)))
	}
	l := newLocal(Host{}, Options{proc: f.root, sys: f.root}, nil, steadyClock())
	defer l.close()
	if s, err := l.look(context.Background()); s != nil || err == nil || !strings.Contains(err.Error(), "diskstats") {
		t.Fatalf("first look: %v, %v", s, err)
	}
	f.write("stat", "cpu0 1100 100 500 8000 200 10 40 20 40 0\n")
	s, err := l.look(context.Background())
	if err != nil {
		t.Errorf("said again: %v", err)
	}
	if s == nil || s.CPU == nil || s.CPU.User != 1 || s.Disks != nil || s.TCP != nil || s.Memory == nil {
		t.Errorf("sample %+v", s)
	}
}

func TestOldKernelHasFewerModes(t *testing.T) {
	var c counters
	require.NoError(t, parseCPU([]byte("cpu 10 20 30 40\ncpu0 10 20 30 40\nintr 5\n"), &c))
	if got := c.cores[0].mode; math.Abs(got.User-0.3) > 1e-9 || got.Steal != 0 {
		t.Errorf("%+v", got)
	}
}

func TestParseProcStat(t *testing.T) {
	line := "77 (a) b (c\n) S 1 70 70 0 -1 4194560 1 2 3 4 150 50 20 10 20 0 5 0 9000 100 25 18446744073709551615\n"
	s, err := parseProcStat([]byte(line))
	require.NoError(t, err)
	if string(s.comm) != "a) b (c\n" || s.pid != 77 || s.ppid != 1 || s.pgrp != 70 || s.threads != 5 || s.start != 9000 ||
		s.rss != 25*int64(os.Getpagesize()) || s.self != (usage{user: 1.5e6, system: 5e5}) || s.kids != (usage{user: 2e5, system: 1e5}) {
		t.Errorf("%+v", s)
	}
	for _, bad := range []string{"", "77", "77 (x", "77 (x) ", "77 (x) S", "77 (x) S 1 1 1 1 1 1 1 1 1 1 a b c d", ") 5 ("} {
		if _, err := parseProcStat([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestCalledBy(t *testing.T) {
	for _, c := range []struct {
		name, comm, argv0, exe string
		want                   bool
	}{
		{"nginx", "nginx", "nginx: worker process", "nginx", true},
		{"globus-gridftp-server", "globus-gridftp-", "globus-gridftp-server", "", true},
		{"globus-gridftp-server", "globus-gridftp-", "", "", true},
		{"globus-gridftp-server", "globus-gridftp-", "globus-gridftp-other", "", false},
		{"java", "dcache", "java", "java", true},
		{"xrootd", "xrdcp", "xrdcp", "xrdcp", false},
	} {
		if got := calledBy(c.name, c.comm, c.argv0, c.exe); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestOnlyEmulatedLinksAreLeftOut(t *testing.T) {
	for name, is := range map[string]bool{"weir0": true, "weir12": true, "weir": false, "weir05bc-1": false, "weir1-1": false, "weirdo": false,
		"eth0": false} {
		if emulated([]byte(name)) != is {
			t.Errorf("%s: %v", name, !is)
		}
	}
}
