package merge

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/results"
)

func TestPackedRunsAreTheSame(t *testing.T) {
	dir := parts(t, 2)[0].write(t)
	file := filepath.Join(t.TempDir(), "run"+Ending)
	back := filepath.Join(t.TempDir(), "back")
	require.NoError(t, Pack(dir, file))
	require.NoError(t, Unpack(file, back))
	for _, name := range files()[:5] {
		a, errA := os.ReadFile(filepath.Join(dir, name))
		b, errB := os.ReadFile(filepath.Join(back, name))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: %v, %v, %d and %d bytes", name, errA, errB, len(a), len(b))
		}
	}
	if err := Unpack(file, back); err == nil {
		t.Error("a folder that is there was overwritten")
	}
	if err := Pack(t.TempDir(), filepath.Join(t.TempDir(), "x")); err == nil {
		t.Error("an empty folder was packed")
	}
}

// A file that is cut anywhere, or is none, leaves nothing.
func TestTornArchives(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run"+Ending)
	require.NoError(t, Pack(parts(t, 2)[0].write(t), file))
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, text := range [][]byte{nil, []byte("hello"), whole[:10], whole[:len(whole)/2], whole[:len(whole)-3],
		append(bytes.Clone(whole[:len(whole)-9]), make([]byte, 9)...)} {
		in := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(in, "x"), text, 0o600))
		if err := Unpack(filepath.Join(in, "x"), filepath.Join(in, "run")); err == nil {
			t.Errorf("%d of %d bytes were taken", len(text), len(whole))
		}
		if entries, _ := os.ReadDir(in); len(entries) != 1 {
			t.Errorf("%d of %d bytes left %v", len(text), len(whole), entries)
		}
	}
}

// What an archive holds is nobody's order.
func TestHostileArchives(t *testing.T) {
	about := tar.Header{Name: results.AboutFile, Typeflag: tar.TypeReg, Mode: 0o644}
	for want, headers := range map[string][]tar.Header{
		"which is no file of a run": {{Name: "../" + results.AboutFile, Typeflag: tar.TypeReg}},
		`"/etc/passwd"`:             {{Name: "/etc/passwd", Typeflag: tar.TypeReg}},
		"pack each run by itself": {{Name: "a/" + results.AboutFile, Typeflag: tar.TypeReg},
			{Name: "b/" + results.PlanFile, Typeflag: tar.TypeReg}},
		"hosts.jsonl, events.jsonl": {{Name: "findings.json", Typeflag: tar.TypeReg}},
		"no regular file":           {{Name: results.AboutFile, Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}},
		"is in it twice":            {about, about},
		"far more than":             {{Name: results.IntervalsFile, Typeflag: tar.TypeReg, Size: 1 << 40}},
		"plan.json, intervals":      {about},
	} {
		var b bytes.Buffer
		zip := gzip.NewWriter(&b)
		out := tar.NewWriter(zip)
		for _, h := range headers {
			require.NoError(t, out.WriteHeader(&h))
		}
		_, _ = out.Close(), zip.Close() // one of them is not as long as it says
		in := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(in, "x"), b.Bytes(), 0o600))
		if err := Unpack(filepath.Join(in, "x"), filepath.Join(in, "run")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if entries, _ := os.ReadDir(in); len(entries) != 1 {
			t.Errorf("%s: it left %v", want, entries)
		}
	}
}

// Who packs a run directory with tar packs what was made of it as well, in a folder
// of any name.
func TestRunsPackedWithTar(t *testing.T) {
	dir := parts(t, 2)[0].write(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "report.html"), []byte("made again"), 0o600))
	for _, args := range [][]string{{"-C", dir, "."}, {"-C", filepath.Dir(dir), filepath.Base(dir)}} {
		file, back := filepath.Join(t.TempDir(), "run"+Ending), filepath.Join(t.TempDir(), "back")
		if out, err := exec.CommandContext(t.Context(), "tar", append([]string{"-czf", file}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		require.NoError(t, Unpack(file, back))
		if entries, _ := os.ReadDir(back); len(entries) < 5 || len(entries) > 6 {
			t.Errorf("unpacked: %v", entries)
		}
	}
}
