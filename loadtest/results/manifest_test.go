package results

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
)

func openManifest(t testing.TB, dir string) *Manifest {
	t.Helper()
	m, err := OpenManifest(dir)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func TestManifestKnowsWhatIsLeft(t *testing.T) {
	dir := t.TempDir()
	m := openManifest(t, dir)
	odd := []string{"plain", `quo"te\`, "new\nline", "nicht-ASCII-äöü", "no utf8 \xff\xfe", "", "del\x7f", "<&>"}
	var want []Made
	for i, path := range odd {
		f := Made{path, int64(i), ^uint64(i)}
		require.NoError(t, m.Created(f.Path, f.Size, f.Seed))
		want = append(want, f)
	}
	require.NoError(t, m.Removed(odd[0]))
	require.NoError(t, m.Removed("never made"))
	again := openManifest(t, dir)
	left, err := again.Left()
	require.NoError(t, err)
	if diff := cmp.Diff(want[1:], left); diff != "" {
		t.Error(diff)
	}
}

func TestManifestCutsATornLine(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, ManifestFile, `{"op":"create","path":"a","size_bytes":1,"seed":2}`+"\n"+`{"op":"create","path":"b","si`)
	m := openManifest(t, dir)
	require.NoError(t, m.Created("c", 3, 4))
	left, err := m.Left()
	if diff := cmp.Diff([]Made{{"a", 1, 2}, {"c", 3, 4}}, left); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestManifestRefusesDamage(t *testing.T) {
	for _, text := range []string{"x\n", `{"op":"create"}` + "\n", `{"op":"burn","path":"a"}` + "\n"} {
		dir := t.TempDir()
		put(t, dir, ManifestFile, text)
		if left, err := openManifest(t, dir).Left(); err == nil {
			t.Errorf("%q was read as %v", text, left)
		}
	}
}

func TestManifestOfManyClients(t *testing.T) {
	dir := t.TempDir()
	m := openManifest(t, dir)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for k := range 100 {
				path := fmt.Sprintf("%d/%d", i, k)
				if err := m.Created(path, 1, 1); err != nil {
					t.Error(err)
				}
				if k%2 == 0 {
					if err := m.Removed(path); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if left, err := m.Left(); err != nil || len(left) != 16*50 {
		t.Errorf("%d left, %v", len(left), err)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"op":"create","path":"a","size_bytes":1,"seed":2}` + "\n"))
	f.Add([]byte(`{"op":"remove","path_base64":"/w=="}` + "\n{"))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, ManifestFile), b, 0o600))
		m := openManifest(t, dir)
		before, err := m.Left()
		if err != nil {
			return
		}
		require.NoError(t, m.Created("a new one", 1, 2))
		after, err := m.Left()
		if err != nil || len(after) < len(before) || after[len(after)-1] != (Made{"a new one", 1, 2}) {
			t.Fatalf("%v, then %v, %v", before, after, err)
		}
	})
}

func BenchmarkManifestCreated(b *testing.B) {
	m := openManifest(b, b.TempDir())
	b.ReportAllocs()
	for i := range b.N {
		require.NoError(b, m.Created("weir-7f3a/client-0001/file-000001.dat", 1<<20, uint64(i)))
	}
}
