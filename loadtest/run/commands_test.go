package run

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/unit"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// recorded collects the states of commands, by their text.
type recorded struct {
	mu     sync.Mutex
	states map[string][]measure.Command
}

func (r *recorded) add(e measure.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states[e.Command.Run] = append(r.states[e.Command.Run], *e.Command)
	return nil
}

func (r *recorded) of(run string) (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.states[run] {
		all = append(all, c.State)
	}
	return all
}

// Commands run at their times, and are ended with the load together with their child processes.
func TestCommands(t *testing.T) {
	left := filepath.Join(t.TempDir(), "left")
	long := "(sleep 3; touch " + left + ") & sleep 600"
	at := func(d time.Duration, run string) scenario.Event {
		return scenario.Event{At: unit.Duration(d), Run: run}
	}
	r := &recorded{states: map[string][]measure.Command{}}
	c := newCommands(t.Context(), []scenario.Event{at(0, "exit 3"), at(time.Millisecond, long), at(time.Hour, "true")}, r.add)
	c.begin()
	require.Eventually(t, "the long command runs, and the short one has ended", func() bool {
		return slices.Equal(r.of(long), []string{measure.CommandBegan}) && len(r.of("exit 3")) == 2
	})
	require.NoError(t, c.end())
	for run, want := range map[string][]string{
		"exit 3": {measure.CommandBegan, measure.CommandEnded}, long: {measure.CommandBegan, measure.CommandKilled},
		"true": {measure.CommandNotRun},
	} {
		if got := r.of(run); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", run, got, want)
		}
	}
	if exit := r.states["exit 3"][1].Exit; exit != 3 {
		t.Errorf("exit code %d", exit)
	}
	time.Sleep(4 * time.Second)
	if found, _ := filepath.Glob(left); len(found) > 0 {
		t.Error("a child process went on after the load")
	}
}

// Without load no command runs.
func TestCommandsWithoutLoad(t *testing.T) {
	r := &recorded{states: map[string][]measure.Command{}}
	c := newCommands(t.Context(), []scenario.Event{{Run: "true"}}, r.add)
	require.NoError(t, c.end())
	if got := r.of("true"); !slices.Equal(got, []string{measure.CommandNotRun}) {
		t.Errorf("%q", got)
	}
}
