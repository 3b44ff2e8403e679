package mover

import (
	"os"
	"path"
	"path/filepath"
	"testing"
	"time"

	"weir/internal/adler"
	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/transfer"
)

// xrootd starts a real XRootD with HTTP, and returns the URL and the path of a folder there that it
// may write to.
func xrootd(t *testing.T, c lab.XRootDConfig) (url, dir string, s *lab.System) {
	t.Helper()
	s = labtest.Start(t, c)
	return s.URLs["http"], s.Data, s
}

// placed puts a file where a server that runs as another user can read it.
func placed(t *testing.T, dir, name string, seed uint64, size int64) string {
	t.Helper()
	sum := file(t, dir, name, seed, size)
	for n := filepath.Join(dir, name); n != dir; n = filepath.Dir(n) {
		require.NoError(t, os.Chmod(n, 0o777))
	}
	return sum
}

// TestPullFromXRootD: from a real XRootD, alone and behind a redirector.
func TestPullFromXRootD(t *testing.T) {
	for what, c := range map[string]lab.XRootDConfig{"alone": {}, "redirector": {Servers: 1}} {
		t.Run(what, func(t *testing.T) {
			const size = 70<<20 + 5
			url, dir, s := xrootd(t, c)
			if dir == "" {
				dir = s.Servers[len(s.Servers)-1].Data
			}
			sum := placed(t, dir, "run1/f", 1, size)
			m := newMover(t, Options{})
			for i, known := range []string{sum, ""} {
				l := pullLease(url, "run1/f", known, size)
				l.Streams, l.Dest.Path = 1+2*i, "got/"+string(rune('a'+i))
				out := do(t, m, l)
				arrived(t, m, filepath.Join(dir, "run1/f"), l, out)
				if out.Adler != sum {
					t.Errorf("%+v", out)
				}
			}
			failed(t, do(t, m, pullLease(url, "run1/none", sum, size)), transfer.SourceBad)
			failed(t, do(t, m, pullLease(url, "run1/f", sum, size-1)), transfer.SourceBad)
			require.NoError(t, flip(filepath.Join(dir, "run1/f"), 1<<20))
			failed(t, do(t, m, pullLease(url, "run1/f", sum, size)), transfer.SourceBad)
		})
	}
}

// patient tries again, as agents do, with the server started anew, as its systemd unit does. A request for a file that
// does not exist makes XRootD 5.5.3 return 500 occasionally, crash (XrdLinkXeq::DoIt), or accept no connection any more
// (14 of 1,560 runs on a busy machine).
func patient(t *testing.T, m *Mover, s *lab.System, l transfer.Lease) transfer.Outcome {
	t.Helper()
	out := do(t, m, l)
	for range 3 {
		if out.Fault != transfer.Transient && out.Fault != transfer.Unreachable {
			break
		}
		t.Logf("again: %s", out.Reason)
		require.NoError(t, s.Restart(t.Context()))
		out = do(t, m, l)
	}
	return out
}

// TestPushToXRootD: a real XRootD takes the file under a temporary name, returns its checksum, and
// renames it.
func TestPushToXRootD(t *testing.T) {
	url, dir, server := xrootd(t, lab.XRootDConfig{})
	m := newMover(t, Options{Stall: 10 * time.Second})
	for i, size := range []int64{0, 1000, 20<<20 + 7} {
		name := path.Join("store/run1", string(rune('a'+i)))
		sum := file(t, m.opt.Root, name, uint64(i), size)
		l := pushLease(url, name, sum, size)
		out := patient(t, m, server, l)
		if out.Fault != "" || !out.Verified || out.Adler != sum {
			t.Fatalf("%+v", out)
		}
		if hashed(t, filepath.Join(dir, name)) != hashed(t, filepath.Join(m.opt.Root, name)) {
			t.Error("the copy differs")
		}
		if out = patient(t, m, server, l); !out.Existed || !out.Verified || out.Moved != 0 {
			t.Errorf("a second time: %+v", out)
		}
		other := placed(t, dir, name+"x", uint64(i+9), size+1)
		require.NoError(t, os.Rename(filepath.Join(m.opt.Root, name), filepath.Join(m.opt.Root, name+"x")))
		failed(t, patient(t, m, server, pushLease(url, name+"x", sum, size)), transfer.Occupied)
		if again := placedSum(t, filepath.Join(dir, name+"x")); again != other {
			t.Error("another file was replaced")
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, Hidden, "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func placedSum(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	s, err := sumOf(f, 0, info.Size(), make([]byte, 1<<20))
	require.NoError(t, err)
	return adler.Text(s)
}

// TestNginx: a real nginx as source and destination; it sends no checksums.
func TestNginx(t *testing.T) {
	s := labtest.Start(t, lab.NginxConfig{})
	url := s.URL
	const size = 3 << 20
	sum := placed(t, s.Data, "f", 1, size)
	m := newMover(t, Options{})
	l := pullLease(url, "f", sum, size)
	l.Chunk, l.Streams = 1<<20, 3
	arrived(t, m, filepath.Join(s.Data, "f"), l, do(t, m, l))
	l.Adler, l.Dest.Path = "", "g"
	failed(t, do(t, m, l), transfer.Unverified)
	p := pushLease(url, "store/f", sum, size)
	p.Source.Path = "f"
	failed(t, do(t, m, p), transfer.Unverified)
	p.Unchecked = true
	if out := do(t, m, p); out.Fault != "" || out.Verified {
		t.Errorf("%+v", out)
	}
	if hashed(t, filepath.Join(s.Data, "store/f")) != hashed(t, filepath.Join(s.Data, "f")) {
		t.Error("the copy differs")
	}
}
