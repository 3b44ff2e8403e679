package engine

import (
	"context"
	"runtime"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
)

// busy is a service whose clients always have something to compute, like clients of a service that
// responds faster than one processor reads the responses.
type busy struct{ storage.Service }

func (b busy) Client() storage.Client { return busyClient{b.Service.Client()} }

type busyClient struct{ storage.Client }

func (c busyClient) Do(_ context.Context, _ *storage.Op, p storage.Progress) (storage.Result, error) {
	for range 10 {
		for i := range 2000 {
			runtime.KeepAlive(i)
		}
		runtime.Gosched() // as at each wait for a socket
	}
	p.Moved(1 << 10)
	return storage.Result{}, nil
}

// A step of thousands of clients that never wait is measured at its time: the release of the memory
// of their start waits in the scheduler's queue for each piece of the heap.
func TestStepOfBusyClientsIsMeasured(t *testing.T) {
	tier.Slow(t, "keeps cores busy")
	if raceEnabled {
		t.Skip("the race detector's scheduler differs")
	}
	heap := make([][]byte, 50_000) // swept in thousands of pieces
	for i := range heap {
		heap[i] = make([]byte, 1<<10)
	}
	conf, n := closed(t, "simulated://x?servers=1&service=1ms&dist=constant&files=100x1KiB",
		workload.Work{Kind: "read", Session: "kept", Pick: "random"},
		scenario.Step{Clients: 2 * crowded, Ramp: seconds(.1), Warmup: seconds(.5), Duration: seconds(2)})
	conf.Service, conf.Pacer = busy{conf.Service}, nil
	require.NoError(t, Run(t.Context(), conf))
	runtime.KeepAlive(heap)
	var measured, after float64
	for _, v := range n.intervals {
		switch v.Phase {
		case measure.Measured:
			measured += v.Seconds
		case measure.GracefulStop:
			after += v.Seconds
		}
	}
	if measured <= after { // a busy machine may take some of the 2 s
		t.Errorf("measured for %.2f s, and the clients left for %.2f s, want a step of 2 s", measured, after)
	}
}
