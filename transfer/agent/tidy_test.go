package agent

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"weir/transfer"
	"weir/transfer/client"
)

// Temporaries with which nobody goes on are removed when the coordinator says so,
// and nothing else is.
func TestTemporariesAreTidiedUp(t *testing.T) {
	dir := t.TempDir()
	a, err := New(t.Context(), Options{Site: "A", Root: dir, Coordinator: client.Config{URLs: []string{"http://127.0.0.1:1"}, Token: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for _, name := range []string{"7.1.part", "7.2.part", "8.1.part", "9.1.part.txt", "x.1.part", "09.1.part"} {
		if err := os.WriteFile(filepath.Join(dir, ".weir", name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, cancel := context.WithCancelCause(t.Context())
	a.hands.take(transfer.Lease{Item: 8, Epoch: 2}, cancel)
	got := a.parts()
	slices.SortFunc(got, func(x, y transfer.Hold) int { return cmp.Compare(x.Epoch, y.Epoch) })
	if want := []transfer.Hold{{Item: 7, Epoch: 1}, {Item: 7, Epoch: 2}}; !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	if again := a.parts(); again != nil {
		t.Errorf("at once once more: %v", again)
	}
	a.tidy([]transfer.Hold{{Item: 7, Epoch: 1}, {Item: 8, Epoch: 1}, {Item: 100, Epoch: 1}})
	left, err := filepath.Glob(filepath.Join(dir, ".weir", "*.part*"))
	if err != nil || len(left) != 6 { // mover.parts is one of them
		t.Errorf("%q, %v", left, err)
	}
}
