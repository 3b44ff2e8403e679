package engine

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
)

// silent has clients whose operations reach a phase and end with a timeout, or after a while if
// answers is set.
type silent struct {
	storage.Service
	reached []storage.Phase
	answers time.Duration // 0: never
}

func (s silent) Client() storage.Client { return silentClient{s.Service.Client(), s} }

type silentClient struct {
	storage.Client
	s silent
}

func (c silentClient) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	for _, phase := range c.s.reached {
		p.Reached(phase)
	}
	if c.s.answers > 0 {
		time.Sleep(c.s.answers) // of the bubble's clock
		return c.Client.Do(ctx, op, p)
	}
	time.Sleep(op.Timeout)
	return storage.Result{}, &storage.OpError{Kind: op.Kind, URL: op.Path, Err: os.ErrDeadlineExceeded}
}

// After two seconds without a response a run reports the event that it waits for, once; a target
// that responds sooner is not mentioned.
func TestSilenceIsShown(t *testing.T) {
	for _, c := range []struct {
		reached []storage.Phase
		answers time.Duration
		want    string
	}{
		{nil, 0, "not connected yet"},
		{[]storage.Phase{storage.Connected}, 0, "connected, but no answer"},
		{[]storage.Phase{storage.Connected}, 5 * time.Second, "connected, but no answer"},
		{[]storage.Phase{storage.Connected}, time.Second, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			conf, _ := closed(t, "simulated://host.example?service=1ms&files=3x10B", workload.Work{Kind: "read", Session: "kept"}, stepOf(1, 1))
			conf.Plan.Files = scenario.Files{Listing: true}
			conf.Service = silent{conf.Service, c.reached, c.answers}
			var shown []string
			var after time.Duration
			begun := time.Now()
			conf.Waiting = func(what string) { shown, after = append(shown, what), time.Since(begun) }
			_, err := Prepare(t.Context(), conf, nil, nil)
			if (err == nil) != (c.answers > 0) || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("answers after %v: %v", c.answers, err)
			}
			text := strings.Join(shown, "\n")
			if c.want == "" && text != "" || !strings.Contains(text, c.want) || len(shown) > 1 ||
				c.want != "" && (after != silenceShown || !strings.Contains(text, "host.example")) {
				t.Errorf("answers after %v, reached %v: shown %q after %v, want %q", c.answers, c.reached, shown, after, c.want)
			}
		})
	}
}
