package results

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/measure"
	"weir/monitor"
)

// seen has the lines that a follower passed on.
type seen struct{ intervals, samples, events, links []string }

func (s *seen) takers(t testing.TB) Takers {
	return Takers{
		Interval: func(iv *measure.Interval) { s.intervals = append(s.intervals, string(line(t, iv))) },
		Sample:   func(v *monitor.Sample) { s.samples = append(s.samples, string(line(t, v))) },
		Event:    func(e *measure.Event) { s.events = append(s.events, string(line(t, e))) },
		Link:     func(l *LinkInterval) { s.links = append(s.links, string(line(t, l))) },
	}
}

// rest polls until nothing moves.
func rest(t testing.TB, f *Follower, take Takers) {
	t.Helper()
	for {
		moved, err := f.Poll(take)
		require.NoError(t, err)
		if !moved {
			return
		}
	}
}

// all returns the lines that the iterators find in dir.
func all(t *testing.T, dir string) (s seen) {
	t.Helper()
	r, take := open(t, dir), s.takers(t)
	for _, iv := range collect(t, r.Intervals()) {
		take.Interval(iv)
	}
	for _, v := range collect(t, r.Samples()) {
		take.Sample(v)
	}
	for _, e := range collect(t, r.Events()) {
		take.Event(e)
	}
	for _, l := range collect(t, r.Links()) {
		take.Link(l)
	}
	return s
}

func same(t *testing.T, want, got seen) {
	t.Helper()
	for _, c := range []struct {
		name      string
		want, got []string
	}{{"intervals", want.intervals, got.intervals}, {"samples", want.samples, got.samples}, {"events", want.events, got.events},
		{"links", want.links, got.links}} {
		if len(c.want) != len(c.got) {
			t.Errorf("%d %s instead of %d", len(c.got), c.name, len(c.want))
			continue
		}
		for i := range c.want {
			if c.want[i] != c.got[i] {
				t.Errorf("%s: line %d is\n%s instead of\n%s", c.name, i+1, c.got[i], c.want[i])
				break
			}
		}
	}
}

// bare returns a run directory whose growing files do not exist yet.
func bare(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{AboutFile: `{"format":3}`, PlanFile: `{"version":2}`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

func follow(t testing.TB, dir string) *Follower {
	t.Helper()
	f, err := Follow(dir)
	require.NoError(t, err)
	return f
}

// appendTo appends text to one of dir's files.
func appendTo(t testing.TB, dir, name, text string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	require.NoError(t, err)
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, f.Close())
}

// Each line is passed on once and in order, for any growth of the files in pieces and any number of
// polls. Files appear one after the other.
func TestFollowerReadsWhatAppearsInPieces(t *testing.T) {
	tier.Slow(t, "reads thousands of pieces")
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		texts := map[string]string{}
		for i := range 60 {
			texts[IntervalsFile] += string(line(t, testInterval(i))) + "\n" + strings.Repeat("\n", r.IntN(8)/7)
			texts[HostsFile] += string(line(t, &monitor.Sample{Time: time.Unix(int64(i+1), 0).UTC(), Host: strings.Repeat("é", r.IntN(40))})) + "\n"
			texts[EventsFile] += string(line(t, measure.Event{Time: time.Unix(int64(i+1), 0).UTC(), Kind: measure.EventError, Text: "a\nb"})) + "\n"
			texts[LinksFile] += string(line(t, &LinkInterval{Start: time.Unix(int64(i+1), 0).UTC(), Seconds: 1, Source: "A", Dest: "B"})) + "\n"
		}
		dir := bare(t)
		f, got := follow(t, dir), seen{}
		for len(texts) > 0 {
			for name, text := range texts {
				n := min(len(text), r.IntN(700))
				appendTo(t, dir, name, text[:n])
				if texts[name] = text[n:]; n == len(text) {
					delete(texts, name)
				}
				if _, err := f.Poll(got.takers(t)); err != nil {
					t.Fatal(err)
				}
			}
		}
		rest(t, f, got.takers(t))
		same(t, all(t, dir), got)
	}
}

// A follower waits for the rest of a line that was cut off. If the writer was killed, the rest
// never comes: the process that resumes the run removes the line and continues, maybe with as many
// bytes.
func TestFollowerAndARunThatIsKilledAndResumed(t *testing.T) {
	for name, end := range map[string]string{"half a line": `{"time":"2026-01-0`, "zeros": "\x00\x00",
		"more than the next line": `{"start":"` + strings.Repeat("x", 3*piece),
		"whole but for its end":   `{"time":"2026-01-02T03:04:05Z","start":"2026-01-02T03:04:05Z","event":"x","text":""}`} {
		t.Run(name, func(t *testing.T) {
			w, dir := create(t)
			f, got := follow(t, dir), seen{}
			if f.Over() {
				t.Error("over while it is written")
			}
			require.NoError(t, errors.Join(w.Interval(testInterval(1)), w.Event(measure.Event{Kind: measure.EventStep, Step: 1})))
			rest(t, f, got.takers(t))
			require.NoError(t, w.Close())
			endAll(t, dir, end)
			rest(t, f, got.takers(t))
			if len(got.intervals) != 1 || len(got.samples) != 0 || len(got.events) != 1 {
				t.Errorf("before the end of the lines: %+v", got)
			}
			if !f.Over() || f.Ended() {
				t.Error("it was killed, so it is over and has not ended")
			}
			rest(t, f, got.takers(t))
			same(t, all(t, dir), got)
			w, _, err := Resume(dir)
			require.NoError(t, err)
			if f.Over() {
				t.Error("over while it is resumed")
			}
			if err := errors.Join(w.Event(measure.Event{Kind: measure.EventResume}), w.Interval(testInterval(2)), w.Interval(testInterval(3)),
				w.Event(measure.Event{Kind: measure.EventEnd}), w.Close()); err != nil {
				t.Fatal(err)
			}
			rest(t, f, got.takers(t))
			if !f.Over() || !f.Ended() {
				t.Error("it has ended")
			}
			same(t, all(t, dir), got)
		})
	}
}

// The same with processes: the writer is killed at a random instant.
func TestFollowerOfAnotherProcess(t *testing.T) {
	tier.Slow(t, "starts a process")
	dir := filepath.Join(t.TempDir(), "run")
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asChild+"=kill", asChild+"_DIR="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var f *Follower
	var got seen
	for range 40 {
		if _, err := io.ReadFull(out, make([]byte, 20)); err != nil {
			t.Fatal(err)
		}
		if f == nil {
			f = follow(t, dir)
		}
		if f.Over() {
			t.Error("over while it is written")
		}
		if _, err := f.Poll(got.takers(t)); err != nil {
			t.Fatal(err)
		}
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed on purpose
	if !f.Over() {
		t.Error("not over when the writer is dead")
	}
	rest(t, f, got.takers(t))
	same(t, all(t, dir), got)
	if len(got.intervals) < 800 {
		t.Errorf("only %d intervals", len(got.intervals))
	}
}

// A backlog is read in pieces, in bounded memory.
func TestFollowerTakesABacklogInPieces(t *testing.T) {
	tier.Slow(t, "reads a large run")
	dir := bare(t)
	appendTo(t, dir, IntervalsFile, strings.Repeat(numbered(40_000), 4))
	appendTo(t, dir, EventsFile, strings.Repeat(" \n", perPoll)) // empty lines, in large numbers
	f := follow(t, dir)
	n, polls := 0, 0
	for moved := true; moved; polls++ {
		before, err := n, error(nil)
		if moved, err = f.Poll(Takers{Interval: func(*measure.Interval) { n++ }}); err != nil {
			t.Fatal(err)
		}
		if size := (n - before) * len(numbered(1)); size > perPoll+2*piece {
			t.Errorf("a Poll has read %d bytes", size)
		}
	}
	if n != 160_000 || polls < 2 {
		t.Errorf("%d intervals in %d polls", n, polls)
	}
	if size := cap(f.intervals.buf) + cap(f.events.buf); size > 2*piece {
		t.Errorf("it keeps %d bytes", size)
	}
}

func TestFollowerSaysWhatIsWrong(t *testing.T) {
	good := string(line(t, testInterval(1))) + "\n"
	for name, c := range map[string]struct{ file, text, want string }{
		"damaged": {IntervalsFile, good + "\n{]\n" + good, "intervals.jsonl:3: damaged line"},
		"impossible": {IntervalsFile, good + good + strings.Replace(good, `"done":3`, `"done":-3`, 1),
			"intervals.jsonl:3: damaged line: done -3"},
		"sample":    {HostsFile, "{}\n", "hosts.jsonl:1: damaged line: time is missing"},
		"event":     {EventsFile, "{}\n\n7\n", "events.jsonl:3: damaged line"},
		"too long":  {IntervalsFile, good + strings.Repeat("x", longest+2), "intervals.jsonl:2: line is longer"},
		"long line": {IntervalsFile, good + strings.Repeat("x", longest+2) + "\n", "intervals.jsonl:2: line is longer"},
	} {
		dir := bare(t)
		appendTo(t, dir, c.file, c.text)
		f := follow(t, dir)
		for range 3 { // the error persists
			if _, err := f.Poll(Takers{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, c.file), nil, 0o600))
		if _, err := f.Poll(Takers{}); f.intervals.at > 0 && (err == nil || !strings.Contains(err.Error(), "shorter than what was read")) {
			t.Errorf("%s, then emptied: %v", name, err)
		}
	}
	if _, err := Follow(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is not a run directory") {
		t.Errorf("an empty folder: %v", err)
	}
	dir := bare(t)
	f := follow(t, dir)
	require.NoError(t, os.Mkdir(filepath.Join(dir, EventsFile), 0o700))
	if _, err := f.Poll(Takers{}); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("a folder in a file's place: %v", err)
	}
}

// Without locks the end and the age of the files decide.
func TestFollowerWithoutLocks(t *testing.T) {
	dir := bare(t)
	f := follow(t, dir)
	if f.Over() {
		t.Error("a run that has not written anything yet is not over")
	}
	old := time.Now().Add(-2 * silence)
	require.NoError(t, os.Chtimes(filepath.Join(dir, PlanFile), old, old))
	if !f.Over() {
		t.Error("nothing was written for long")
	}
	appendTo(t, dir, EventsFile, `{"event":"step"}`+"\n")
	if f.Over() {
		t.Error("something was written")
	}
	appendTo(t, dir, EventsFile, `{"event":"end"}`+"\n")
	rest(t, f, Takers{})
	if !f.Over() {
		t.Error("it has ended")
	}
}

// FuzzFollow compares a follower of a file that appears in two pieces with the iterator of the
// whole file.
func FuzzFollow(f *testing.F) {
	f.Add([]byte(numbered(3)), 70)
	f.Add(bytes.Join([][]byte{line(f, testInterval(1)), line(f, testInterval(2)), []byte(`{"start":`)}, []byte("\n")), 100)
	f.Add([]byte("\n\n{}\n"), 1)
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		at = max(0, min(at, len(text)))
		dir := bare(t)
		follower := follow(t, dir)
		n, m := 0, 0
		count := Takers{Interval: func(*measure.Interval) { m++ }}
		appendTo(t, dir, IntervalsFile, string(text[:at]))
		_, _ = follower.Poll(count) // its error persists
		appendTo(t, dir, IntervalsFile, string(text[at:]))
		follower.Over()
		moved, got := true, error(nil)
		for moved && got == nil {
			moved, got = follower.Poll(count)
		}
		var want error
		for _, err := range (&Run{Dir: dir}).Intervals() {
			if want = err; err == nil {
				n++
			}
		}
		if n != m || fmt.Sprint(want) != fmt.Sprint(got) {
			t.Fatalf("%d lines, %v; the iterator gave %d, %v", m, got, n, want)
		}
	})
}
