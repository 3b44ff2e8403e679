package fts_test

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab/labtest"
	"weir/storage"
)

//go:embed testdata/submit.py
var submitPython string

// The body of a job is that of FTS's client library (fts3 of lab/fts.txt) for the same copy, field by
// field: weir sends no field that the library does not have, with the same values, except for its own
// metadata and seed. The further fields of the library are all off.
func TestSameAsFTSLibrary(t *testing.T) {
	t.Parallel()
	tier.Slow(t, "FTS's client library")
	bin := labtest.FTS(t)
	f := startFake(t)
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "python3"), "-c", submitPython, f.URL, "davs://x.example.org/c/s%20p",
		"davs://y.example.org:1094/c/d7", "00010001", "10")
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "PYTHONWARNINGS=ignore")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	library := slices.Clone(f.asked)
	r := rigAt(t, f)
	r.conf.Credentials = func(site string) (storage.Credentials, error) {
		return storage.Credentials{Token: map[string]string{"X": "from", "Y": "to"}[site]}, nil
	}
	i, _ := r.open()
	require.NoError(t, i.Start(t.Context(), someCopies(7, 1, 0)))
	require.Eventually(t, "it is submitted", func() bool { return f.count() == 2 })
	f.mu.Lock()
	defer f.mu.Unlock()
	if want := []string{"GET /", "POST /jobs"}; !slices.Equal(library, want) {
		t.Errorf("the library sent %v", library)
	}
	theirs, ours := f.bodies[0], f.bodies[1]
	same(t, "params", theirs["params"].(map[string]any), ours["params"].(map[string]any), "sid", "job_metadata")
	same(t, "file", theirs["files"].([]any)[0].(map[string]any), ours["files"].([]any)[0].(map[string]any))
	if len(ours) != 2 || ours["params"].(map[string]any)["job_metadata"].(map[string]any)["issuer"] != "weir" {
		t.Errorf("%v", ours)
	}
}

// same compares the fields of two objects, apart from some whose values differ.
func same(t *testing.T, what string, theirs, ours map[string]any, differ ...string) {
	t.Helper()
	n := 0
	for name, v := range ours {
		they, has := theirs[name]
		if !has || !slices.Contains(differ, name) && !equal(v, they) {
			t.Errorf("%s: %s is %v, and %v in the library", what, name, v, they)
		}
		n++
	}
	for name, v := range theirs {
		if _, has := ours[name]; !has && v != nil && v != false && v != 0.0 {
			t.Errorf("%s: the library has %s %v", what, name, v)
		}
	}
	t.Logf("%s: %d fields are the same", what, n-len(differ))
}

func equal(a, b any) bool {
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		for name, v := range a {
			ok = ok && equal(v, b[name])
		}
		return ok && len(a) == len(b)
	}
	return a == b
}
