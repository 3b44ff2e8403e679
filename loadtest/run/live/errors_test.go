package live

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/storage"
)

// TestRepeatedErrors: the same error of several steps has one line, and its class has a line with
// the number of failures.
func TestRepeatedErrors(t *testing.T) {
	var out bytes.Buffer
	v := New(Options{Out: &out, Plan: &scenario.Plan{Steps: []scenario.Step{{Number: 1, Clients: 1}}}, Finish: t.Context()})
	v.Start(1)
	for range 4 {
		require.NoError(t, v.Interval(&measure.Interval{Start: time.Now(), Seconds: 1, Step: 1, Phase: measure.Measured,
			Sum: measure.Sum{Failed: map[storage.Class]int64{storage.NotFound: 25, storage.Busy: 1}}}))
		for range 3 {
			require.NoError(t, v.Event(measure.Event{Kind: measure.EventError, Class: storage.NotFound, Text: "read a: 404"}))
		}
	}
	require.NoError(t, v.Event(measure.Event{Kind: measure.EventError, Class: storage.NotFound, Text: "read b: 404"}))
	require.NoError(t, v.Event(measure.Event{Kind: measure.EventError, Class: storage.Busy, Text: "read a: 503"}))
	v.End()
	v.End()
	v.Stop()
	for _, text := range []string{"read a: 404", "read b: 404", "read a: 503", "not found: 100 operations failed", "busy: "} {
		if n := strings.Count(out.String(), text); n != 1 {
			t.Errorf("%q stands %d times, want once, in\n%s", text, n, out.String())
		}
	}
}
