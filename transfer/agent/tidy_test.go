package agent

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"weir/internal/require"
	"weir/transfer"
	"weir/transfer/client"
)

// Temporaries that will not be resumed are removed when the coordinator requests it, and nothing
// else is.
func TestTemporariesAreTidiedUp(t *testing.T) {
	dir := t.TempDir()
	a, err := New(t.Context(), Options{Site: "A", Root: dir, Coordinator: client.Config{URLs: []string{"http://127.0.0.1:1"}, Token: "x"}})
	require.NoError(t, err)
	defer a.Close()
	for _, name := range []string{"7.1.part", "7.2.part", "8.1.part", "9.1.part.txt", "x.1.part", "09.1.part"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".weir", name), []byte("x"), 0o600))
	}
	_, cancel := context.WithCancelCause(t.Context())
	a.activity.take(transfer.Lease{Item: 8, Epoch: 2}, cancel)
	got := a.parts()
	slices.SortFunc(got, func(x, y transfer.LeaseID) int { return cmp.Compare(x.Epoch, y.Epoch) })
	if want := []transfer.LeaseID{{Item: 7, Epoch: 1}, {Item: 7, Epoch: 2}}; !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	if again := a.parts(); again != nil {
		t.Errorf("at once once more: %v", again)
	}
	a.tidy([]transfer.LeaseID{{Item: 7, Epoch: 1}, {Item: 8, Epoch: 1}, {Item: 100, Epoch: 1}})
	left, err := filepath.Glob(filepath.Join(dir, ".weir", "*.part*"))
	if err != nil || len(left) != 6 { // mover.parts matches as well
		t.Errorf("%q, %v", left, err)
	}
}

// lay creates a site's folder with temporaries of other processes, and with files that only
// resemble them.
func lay(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	do := func(err error) {
		t.Helper()
		require.NoError(t, err)
	}
	hidden := filepath.Join(root, ".weir")
	do(os.MkdirAll(filepath.Join(hidden, "6.1.part"), 0o750)) // a folder
	do(os.MkdirAll(filepath.Join(hidden, "sub"), 0o750))
	for _, name := range []string{
		".weir/1.1.part", ".weir/2.1.part", ".weir/3.1.part", "data", "5.1.part",
		".weir/sub/1.1.part", ".weir/01.1.part", ".weir/1.01.part", ".weir/1.1.part.bak", ".weir/x1.1.part", ".weir/1.1.Part", ".weir/-1.1.part",
		".weir/1.1.part\n", ".weir/99999999999999999999.1.part", ".weir/0.1.part", ".weir/1.0.part", ".weir/1.1.state",
	} {
		do(os.WriteFile(filepath.Join(root, name), []byte("x"), 0o600))
	}
	do(os.Symlink("../data", filepath.Join(hidden, "4.1.part")))
	do(os.Link(filepath.Join(root, "data"), filepath.Join(hidden, "5.1.part")))
	return root
}

func names(t *testing.T, root string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		if filepath.Dir(rel) != stateName && rel != stateName && rel != ".weir/mover.parts" {
			all[rel] = true
		}
		return err
	})
	require.NoError(t, err)
	return all
}

// Only regular files with the exact form of a name in the agent's own folder are ever reported or
// removed, whichever attempts the coordinator reports as over; a file with a second name keeps that
// name.
func TestOnlyTemporariesAreTidiedUp(t *testing.T) {
	t.Parallel()
	root := lay(t)
	want := names(t, root)
	a, err := New(t.Context(), Options{Site: "A", Root: root, Coordinator: client.Config{URLs: []string{"http://127.0.0.1:1"}, Token: "x"}})
	require.NoError(t, err)
	defer a.Close()
	if asked := a.parts(); len(asked) != 4 {
		t.Errorf("asked about %v", asked)
	}
	var over []transfer.LeaseID
	for item := int64(-1); item < 10; item++ {
		if item != 2 { // it is still in use
			over = append(over, transfer.LeaseID{Item: item, Epoch: 1}, transfer.LeaseID{Item: item}, transfer.LeaseID{Item: item, Epoch: 7})
		}
	}
	a.tidy(over)
	for _, gone := range []string{".weir/1.1.part", ".weir/3.1.part", ".weir/5.1.part"} {
		delete(want, gone)
	}
	if got := names(t, root); !maps.Equal(got, want) {
		t.Errorf("left %q, not %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// A hidden folder that is a link to another folder is not cleaned up.
func TestHiddenFolderElsewhere(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "mine"), 0o750))
	require.NoError(t, os.Symlink("mine", filepath.Join(root, ".weir")))
	kept := filepath.Join(root, "mine", "1.1.part")
	require.NoError(t, os.WriteFile(kept, nil, 0o600))
	a, err := New(t.Context(), Options{Site: "A", Root: root, Coordinator: client.Config{URLs: []string{"http://127.0.0.1:1"}, Token: "x"}})
	require.NoError(t, err)
	defer a.Close()
	if asked := a.parts(); len(asked) > 0 {
		t.Errorf("asks about %v", asked)
	}
	a.tidy([]transfer.LeaseID{{Item: 1, Epoch: 1}})
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}
