package emulator

import (
	"os"
	"sync"
	"testing"

	"weir/internal/require"
)

// Making namespaces never moves the program's first thread, whose network /proc/self/net shows.
func TestTheFirstThreadStays(t *testing.T) {
	needSpaces(t)
	before, err := spaceOf(os.Getpid())
	require.NoError(t, err)
	var many sync.WaitGroup
	for range 20 {
		many.Go(func() {
			for range 10 {
				s, err := newSpace()
				if err != nil {
					t.Error(err)
					return
				}
				err = s.in(func() error {
					if now, err := spaceOf(os.Getpid()); err != nil || now != before {
						t.Errorf("the first thread is in %s, before in %s, %v", now, before, err)
					}
					return nil
				})
				if err != nil || s.close() != nil {
					t.Error(err)
				}
			}
		})
	}
	many.Wait()
	if now, err := spaceOf(os.Getpid()); err != nil || now != before {
		t.Errorf("the first thread is in %s, before in %s, %v", now, before, err)
	}
}
