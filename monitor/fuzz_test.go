package monitor

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"weir/internal/require"
)

func seed(f *testing.F, names ...string) {
	for _, dir := range []string{"testdata/proc", "testdata/broken"} {
		for _, name := range names {
			b, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(f, err)
			f.Add(b)
		}
	}
}

// sound fails if counters give a sample that no file could hold or that no
// host could have gone through.
func sound(t *testing.T, before, now *counters) {
	before.at, now.at = at(1), at(2)
	s := now.since(before)
	if _, err := json.Marshal(s); err != nil {
		t.Fatal(err)
	}
	if c := s.CPU; c != nil && (c.Busy() < 0 || c.Busy() > 1.001 || c.Idle < 0 || c.IOWait < 0) {
		t.Fatalf("%+v", c)
	}
	for _, d := range s.Disks {
		if d.Busy < 0 || d.Busy > 1 || d.Queue < 0 || d.Read < 0 || d.Write < 0 || d.Ops < 0 {
			t.Fatalf("%+v", d)
		}
	}
	for _, n := range s.Nets {
		if n.Received < 0 || n.Sent < 0 || n.PacketsIn < 0 || n.PacketsOut < 0 || n.Drops < 0 {
			t.Fatalf("%+v", n)
		}
	}
}

func FuzzHostFiles(f *testing.F) {
	seed(f, "stat", "loadavg", "meminfo", "diskstats", "net/dev", "net/snmp", "net/netstat")
	f.Add([]byte("cpu0 9223372036854775807 1 1 9223372036854775807 9 9 9 9\n"))
	f.Add([]byte("  eth0: 9223372036854775800 1 1 1 1 1 1 1 9223372036854775800 1 1 9223372036854775800 9223372036854775800\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		half := b[:len(b)/2]
		var counted [2]counters
		var names interned
		for i, text := range [][]byte{half, b} {
			c := &counted[i]
			_ = parseCPU(text, c)
			_ = parseLoad(text, c)
			_ = parseMemory(text, c)
			_ = parseDisks(text, c, &names)
			_ = parseNets(text, c, &names)
			c.tcp.Retransmits, _ = parseTable(text, "Tcp:", "RetransSegs")
			c.hasTCP = true
		}
		sound(t, &counted[0], &counted[1])
		sound(t, &counted[1], &counted[0])
	})
}

func FuzzProcessFiles(f *testing.F) {
	f.Add([]byte("77 (a) b (c) S 1 70 70 0 -1 4194560 1 2 3 4 150 50 20 10 20 0 5 0 9000 100 25 1844\n"))
	f.Add([]byte("rchar: 5\nwchar: 6\n"))
	f.Add([]byte("SigIgn:\t0000000000011000\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseProcStat(b)
		if u := s.self.plus(s.kids); err == nil && (u.user < 0 || u.system < 0 || s.rss < 0 || s.threads < 0 || s.pid < 0) {
			t.Fatalf("%+v", s)
		}
		if r, w, err := parseProcIO(b); err == nil && (r < 0 || w < 0) {
			t.Fatal(r, w)
		}
		parseIgnored(b)
	})
}

func FuzzSockets(f *testing.F) {
	seed(f, "net/tcp", "net/tcp6")
	f.Fuzz(func(t *testing.T, b []byte) {
		inodes := map[string]bool{}
		_ = parseSockets(bytes.NewReader(b), netip.Addr{}, 8080, inodes)
		for inode := range inodes {
			if _, ok := number([]byte(inode)); !ok {
				t.Fatalf("inode %q", inode)
			}
		}
	})
}

func FuzzPage(f *testing.F) {
	f.Add([]byte(hostPage))
	f.Add([]byte("weir_serve_payload_sent_bytes_total{a=\"b\"} 1e300\nprocess_cpu_seconds_total 5 1700000000000\n"))
	f.Add([]byte("# TYPE node_load1 histogram\nnode_load1_bucket{le=\"+Inf\"} 5\nnode_load1 3\n"))
	f.Add([]byte("node_cpu_seconds_total{cpu=\"\xff\",mode=\"user\"} 4e18\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, now metrics
		_ = before.parse(b[:len(b)/2])
		_ = now.parse(b)
		sound(t, &before.counters, &now.counters)
		if p, ok := now.procSince(&before, &Sample{Seconds: 1}); ok && (p.User < 0 || p.Sent < 0 || p.Received < 0 || p.RSS < 0) {
			t.Fatalf("%+v", p)
		}
		now.query()
	})
}
