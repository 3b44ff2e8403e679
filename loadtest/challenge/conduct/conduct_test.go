package conduct

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/measure"
	"weir/loadtest/results"
)

func TestMain(m *testing.M) { os.Exit(tier.Main(m)) }

// rig is a challenge with fakes in virtual time.
type rig struct {
	Config
	sites  *fakeSites
	inject *fakeInjector
	view   *noView
}

func newRig(t *testing.T, c *challenge.Challenge, rates ...float64) *rig {
	t.Helper()
	r := &rig{sites: newFakeSites(c), view: &noView{}}
	r.inject = newFakeInjector(r.sites, rates...)
	r.Config = Config{Plan: Plan(c), Dir: filepath.Join(t.TempDir(), "run"), About: results.About{Weir: "test"}, Finish: t.Context(),
		Stop: t.Context(), View: r.view, Ending: func() measure.Ending { return measure.InterruptedBy("SIGINT") },
		Parts: Parts{Sites: r.sites.open, Injector: r.inject.open, Controller: newPacer}}
	r.Plan.Hosts = nil
	return r
}

// again gives the rig the injector of another process.
func (r *rig) again() {
	r.inject = newFakeInjector(r.sites, r.inject.rate...)
	r.Injector = r.inject.open
}

// check holds the records against each other and against the injector's bytes.
func (r *rig) check(t *testing.T, moved []int64) record {
	t.Helper()
	got := readRecord(t, r.Dir)
	byLink, all, copies, interval := map[string]int64{}, int64(0), map[string]int64{}, int64(0)
	for _, l := range got.links {
		byLink[l.Source+l.Dest] += l.Moved
		all += l.Moved
	}
	seen := map[int64]bool{}
	for _, x := range got.transfers {
		if seen[x.Request] {
			t.Errorf("copy %d has two final lines", x.Request)
		}
		seen[x.Request] = true
		copies[x.Source+x.Dest] += x.Moved
	}
	done := int64(0)
	for _, iv := range got.intervals {
		interval += iv.Moved
		done += iv.Done
	}
	for i, l := range r.Plan.Challenge.Links {
		name := l.From + l.To
		if byLink[name] != moved[i] || copies[name] != moved[i] {
			t.Errorf("%s: links.jsonl has %d bytes, transfers.jsonl %d, the injector moved %d", name, byLink[name], copies[name], moved[i])
		}
	}
	if interval != all {
		t.Errorf("intervals.jsonl has %d bytes, links.jsonl %d", interval, all)
	}
	for _, x := range got.transfers {
		if x.Done {
			done--
		}
	}
	if done != 0 {
		t.Errorf("intervals.jsonl has %d more copies than transfers.jsonl", done)
	}
	return got
}

// TestProfile: the rates follow the profile, the records agree with each other and with the bytes
// that were moved, and nothing is left at the sites.
func TestProfile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testChallenge(stage(30*time.Second, .5), stage(20*time.Second, 0), stage(40*time.Second, 1))
		r := newRig(t, c, 4*fakeRate, 4*fakeRate, fakeRate/4)
		r.inject.fails = func(id int64) bool { return id == 4 }
		require.NoError(t, Run(r.Config))
		got := r.check(t, r.inject.moved)
		moved, target := map[string]float64{}, map[string]float64{}
		for _, l := range got.links {
			if l.Stage == 3 && l.Target > 0 {
				moved[l.Source+l.Dest] += float64(l.Moved)
				target[l.Source+l.Dest] += l.Target * l.Seconds
			}
		}
		require.Near(t, "A to B in stage 3 over its target", moved["AB"]/target["AB"], 1, .06)
		require.Near(t, "C to A in stage 3 over its target", moved["CA"]/target["CA"], .25, .02)
		require.Near(t, "target of stage 3", target["AB"], 40*fakeRate, 1)
		if left := r.sites.left(); len(left) > 0 {
			t.Errorf("left at the sites: %v", left)
		}
		stages, failures := 0, 0
		for _, e := range got.events {
			switch e.Kind {
			case measure.EventStep:
				stages++
			case measure.EventError:
				failures++
				if e.On != "B" {
					t.Errorf("the failure is at %q, want B", e.On)
				}
			}
		}
		if stages != 3 || failures != 1 {
			t.Errorf("%d stages and %d failures in events.jsonl, want 3 and 1", stages, failures)
		}
		if e := got.events[len(got.events)-1]; e.Ending().Outcome != measure.Complete {
			t.Errorf("the last event is %+v", e)
		}
		for _, x := range got.transfers {
			if x.Done && !x.Verified {
				t.Errorf("copy %d was not verified", x.Request)
			}
		}
	})
}

// TestForeignFiles: files that are at the paths of copies before stay, and the challenge goes on.
func TestForeignFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testChallenge(stage(20*time.Second, 1))
		r := newRig(t, c, 4*fakeRate, 4*fakeRate, 4*fakeRate)
		r.inject.exists = func(id int64) bool { return id == 4 || id == 7 }
		require.NoError(t, Run(r.Config))
		got := r.check(t, r.inject.moved)
		failed := 0
		for _, x := range got.transfers {
			if !x.Done && x.Class.Failure() {
				failed++
			}
		}
		if left := r.sites.left(); len(left) != 2 || failed != 2 {
			t.Errorf("left at the sites: %v, want two foreign files; %d failures", left, failed)
		}
	})
}

// TestStop: after Ctrl-C no copy is requested, those in flight are cancelled within ten seconds,
// and everything is removed, also if the service does not react.
func TestStop(t *testing.T) {
	for name, hangs := range map[string]bool{"the service cancels": false, "the service does not react": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, testChallenge(stage(time.Hour, 1)), fakeRate/2, fakeRate/2, fakeRate/2)
				r.inject.hangs = hangs
				ctx, finish := context.WithCancel(t.Context())
				r.Finish = ctx
				var stopped time.Time
				time.AfterFunc(33333*time.Millisecond, func() {
					stopped = time.Now()
					finish()
				})
				require.NoError(t, Run(r.Config))
				for _, at := range r.inject.started {
					if at.After(stopped) {
						t.Fatalf("a copy was requested %v after the stop", at.Sub(stopped))
					}
				}
				if len(r.inject.started) < 30 {
					t.Errorf("only %d copies were requested", len(r.inject.started))
				}
				got := readRecord(t, r.Dir)
				end := got.events[len(got.events)-1]
				for _, e := range got.events {
					if e.Kind == measure.EventEnd {
						end = e
					}
				}
				if took := end.Time.Sub(stopped); took > 11*time.Second || end.Outcome != measure.Interrupted {
					t.Errorf("%v after %v", end.Outcome, took)
				}
				if len(got.transfers) != len(r.inject.started) {
					t.Errorf("%d final lines of %d copies", len(got.transfers), len(r.inject.started))
				}
				if left := r.sites.left(); len(left) > 0 {
					t.Errorf("left at the sites: %v", left)
				}
			})
		})
	}
}

// TestStopAtARequest: Ctrl-C while copies are handed to the injector leaves no copy without an end: the
// challenge ends at once, not after the time in which final reports are expected.
func TestStopAtARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, testChallenge(stage(time.Hour, 1)), fakeRate/2, fakeRate/2, fakeRate/2)
		ctx, finish := context.WithCancel(t.Context())
		r.Finish = ctx
		var stopped time.Time
		r.inject.before = func() {
			if len(r.inject.started) >= 10 && stopped.IsZero() {
				stopped = time.Now()
				finish()
			}
		}
		require.NoError(t, Run(r.Config))
		if took := time.Since(stopped); stopped.IsZero() || took > cancelTime/2 {
			t.Errorf("the challenge ended %v after it was stopped", took)
		}
		got := readRecord(t, r.Dir)
		if len(got.transfers) != len(r.inject.started) {
			t.Errorf("%d final lines of %d copies", len(got.transfers), len(r.inject.started))
		}
		for _, e := range got.events {
			if e.Kind == measure.EventWarning && strings.Contains(e.Text, "no final report") {
				t.Error(e.Text)
			}
		}
	})
}

// TestStopBeforeTheLoad: Ctrl-C while files are made removes them and the run directory.
func TestStopBeforeTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, testChallenge(stage(time.Hour, 1)), fakeRate, fakeRate, fakeRate)
		ctx, finish := context.WithCancelCause(t.Context())
		interrupted := errors.New("interrupted")
		r.Finish, r.sites.making = ctx, func() { finish(interrupted) }
		if err := Run(r.Config); !errors.Is(err, interrupted) {
			t.Errorf("error %v, want the cause of the end", err)
		}
		if _, err := os.Stat(r.Dir); err == nil || len(r.sites.left()) > 0 || len(r.inject.started) > 0 {
			t.Errorf("the run directory: %v; at the sites: %v; %d copies", err, r.sites.left(), len(r.inject.started))
		}
	})
}

// TestStopTwice: the second Ctrl-C leaves everything where it is, and clean removes it.
func TestStopTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, testChallenge(stage(time.Hour, 1)), fakeRate/2, fakeRate/2, fakeRate/2)
		r.inject.hangs = true
		stop, end := context.WithCancel(t.Context())
		finish, cancel := context.WithCancel(stop)
		r.Finish, r.Stop = finish, stop
		time.AfterFunc(30*time.Second, cancel)
		time.AfterFunc(32*time.Second, end)
		begin := time.Now()
		require.NoError(t, Run(r.Config))
		if took := time.Since(begin); took > 33*time.Second {
			t.Errorf("it took %v", took)
		}
		if len(r.sites.left()) == 0 {
			t.Error("nothing is left: the second Ctrl-C has cleaned")
		}
		m, err := results.OpenManifest(r.Dir)
		require.NoError(t, err)
		left, removed, err := Clean(t.Context(), r.Dir, r.Plan.Challenge, m, r.Parts)
		require.NoError(t, errors.Join(err, m.Close()))
		if left == 0 || removed != left || len(r.sites.left()) > 0 {
			t.Errorf("removed %d of %d; %v are at the sites", removed, left, r.sites.left())
		}
	})
}

// TestResume: a challenge that is killed continues with the rest of its profile; each copy has one
// final line, no byte counts twice, and nothing is left.
func TestResume(t *testing.T) {
	profile := []challenge.Stage{stage(30*time.Second, .5), stage(60*time.Second, 1)}
	for name, c := range map[string]*challenge.Challenge{"3 links": testChallenge(profile...), "110 links": meshChallenge(profile...)} {
		t.Run(name, func(t *testing.T) { testResume(t, c) })
	}
}

func testResume(t *testing.T, c *challenge.Challenge) {
	synctest.Test(t, func(t *testing.T) {
		rates := []float64{4 * fakeRate, 4 * fakeRate, fakeRate / 4}
		for range len(c.Links) - 3 {
			rates = append(rates, fakeRate)
		}
		r := newRig(t, c, rates...)
		killed := errors.New("killed")
		kill(t, r, 50*time.Second, killed)
		before := r.inject
		r.again()
		begin := time.Now()
		require.NoError(t, Resume(r.Config))
		took := time.Since(begin)
		require.Near(t, "seconds of the second part", took.Seconds(), 40, 3)
		got := readRecord(t, r.Dir)
		moved := int64(0)
		for _, l := range got.links {
			moved += l.Moved
		}
		want := int64(0)
		for i := range before.moved {
			want += before.moved[i] + r.inject.moved[i]
		}
		require.Near(t, "bytes in links.jsonl over those moved", float64(moved)/float64(want), 1, .03)
		held := 0.0
		for _, iv := range got.intervals {
			if iv.Phase == measure.Measured {
				held += iv.Seconds
			}
		}
		require.Near(t, "seconds held", held, 90, .5)
		begun, started := int64(0), 0
		for _, iv := range got.intervals {
			begun += iv.Begun
		}
		for _, l := range got.links {
			started += l.Started
		}
		if n := len(got.transfers); begun != int64(n) || started != n {
			t.Errorf("%d copies began by intervals.jsonl and %d by links.jsonl, %d have ended", begun, started, n)
		}
		lines := map[int64]int{}
		for _, x := range got.transfers {
			lines[x.Request]++
		}
		for _, ids := range []map[int64]int{before.ids, r.inject.ids} {
			for id, n := range ids {
				if n != 1 || lines[id] != 1 {
					t.Errorf("copy %d was requested %d times and has %d final lines", id, n, lines[id])
				}
			}
		}
		for id := range r.inject.ids {
			if before.ids[id] > 0 {
				t.Errorf("copy %d was requested before and after the kill", id)
			}
		}
		if len(r.inject.resumed) == 0 {
			t.Error("no copy was taken over")
		}
		if left := r.sites.left(); len(left) > 0 {
			t.Errorf("left at the sites: %v", left)
		}
		if err := Resume(r.Config); !errors.Is(err, ErrOver) {
			t.Errorf("resuming again: %v, want ErrOver", err)
		}
	})
}

// TestResumeAfterTheProfile: a challenge that is killed while its last copies end gets their final
// lines, and is cleaned.
func TestResumeAfterTheProfile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, testChallenge(stage(30*time.Second, 1)), fakeRate/8, fakeRate/8, fakeRate/8)
		kill(t, r, 40*time.Second, errors.New("killed"))
		before := r.inject
		r.again()
		require.NoError(t, Resume(r.Config))
		got := readRecord(t, r.Dir)
		if len(got.transfers) != len(before.ids) || len(r.inject.ids) > 0 {
			t.Errorf("%d final lines of %d copies; %d copies were requested after the profile",
				len(got.transfers), len(before.ids), len(r.inject.ids))
		}
		if left := r.sites.left(); len(left) > 0 {
			t.Errorf("left at the sites: %v", left)
		}
		if err := Resume(r.Config); !errors.Is(err, ErrOver) {
			t.Errorf("resuming again: %v, want ErrOver", err)
		}
	})
}

// kill runs the challenge and copies its run directory after a time, which then is that of a process
// that was killed.
func kill(t *testing.T, r *rig, after time.Duration, killed error) {
	t.Helper()
	at := filepath.Join(t.TempDir(), "killed")
	dir, stop := r.Dir, r.Stop
	ctx, end := context.WithCancelCause(t.Context())
	r.Finish, r.Stop = ctx, ctx
	time.AfterFunc(after, func() {
		r.inject.mu.Lock()
		r.sites.mu.Lock()
		defer r.sites.mu.Unlock()
		defer r.inject.mu.Unlock()
		if err := os.CopyFS(at, os.DirFS(dir)); err != nil {
			t.Error(err)
		}
		r.inject.copies = map[int64]*fakeCopy{} // they break with the process
		end(killed)
	})
	require.NoError(t, Run(r.Config))
	r.Dir, r.Finish, r.Stop = at, stop, stop
	if _, err := os.Stat(filepath.Join(at, results.LinksFile)); err != nil {
		t.Fatal(err)
	}
}

// TestSpread: bytes between two reports are spread evenly, and no byte is lost at the edges.
func TestSpread(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := testChallenge(stage(time.Hour, 1))
	l := newLedger(timeline{c, begin}, 3, begin)
	l.start([]inject.Copy{{ID: 1, Link: 1, Source: inject.File{Size: 100}}}, begin)
	l.step(begin.Add(20 * time.Second))
	l.report(&inject.Report{ID: 1, State: inject.Running, Moved: 0, At: begin.Add(2500 * time.Millisecond)}, begin.Add(2500*time.Millisecond))
	l.report(&inject.Report{ID: 1, State: inject.Running, Moved: 40, At: begin.Add(6500 * time.Millisecond)}, begin.Add(6500*time.Millisecond))
	want := []int64{0, 0, 5, 10, 10, 10, 5, 0}
	for i, n := range want {
		if got := l.each.cells[i].parts[1].moved; got != n {
			t.Errorf("second %d has %d bytes, want %d", i, got, n)
		}
	}
	if open := l.horizon(); !open.Equal(begin.Add(6500 * time.Millisecond)) {
		t.Errorf("seconds until %v can be written, want until the last report", open.Sub(begin))
	}
	l.write(begin.Add(10 * time.Second))
	l.report(&inject.Report{ID: 1, State: inject.Done, Moved: 100, At: begin.Add(14500 * time.Millisecond)}, begin.Add(14500*time.Millisecond))
	sum := int64(0)
	for _, c := range l.each.cells {
		sum += c.parts[1].moved
	}
	if sum != 60 {
		t.Errorf("%d bytes after the seconds that were written, want 60", sum)
	}
}

func (l *ledger) write(until time.Time) { l.each.take(until) }

// fakeService is a fakeInjector whose service removes copies itself.
type fakeService struct {
	*fakeInjector
	removed map[int64]int
	cleaned int
}

// Remove implements inject.Remover.
func (f *fakeService) Remove(_ context.Context, ids []int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		f.removed[id]++
	}
	return nil
}

// Clean implements inject.Remover.
func (f *fakeService) Clean(context.Context) error {
	f.cleaned++
	return nil
}

// TestServiceRemoves: copies of a service with a catalog are removed by the service only, and have
// the paths of their sources. The manifest has each of them.
func TestServiceRemoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testChallenge(stage(20*time.Second, 1))
		r := newRig(t, c, 2*fakeRate, 2*fakeRate, 2*fakeRate)
		service := &fakeService{fakeInjector: r.inject, removed: map[int64]int{}}
		r.Injector = func(ctx context.Context, conf inject.Config) (inject.Injector, error) {
			_, err := r.inject.open(ctx, conf)
			return service, err
		}
		require.NoError(t, Run(r.Config))
		got := readRecord(t, r.Dir)
		if r.sites.removed != len(c.Sites) || service.cleaned != 1 {
			t.Errorf("%d files were removed at the sites, want only the %d sources; cleaned %d times",
				r.sites.removed, len(c.Sites), service.cleaned)
		}
		if len(got.transfers) < 30 {
			t.Errorf("only %d copies", len(got.transfers))
		}
		for _, x := range got.transfers {
			if x.File != "weir-x/source.dat" || x.Done && service.removed[x.Request] != 1 {
				t.Errorf("copy %d to %s was removed %d times by the service", x.Request, x.File, service.removed[x.Request])
			}
		}
		m, err := results.OpenManifest(r.Dir)
		require.NoError(t, err)
		left, err := m.Left()
		require.NoError(t, errors.Join(err, m.Close()))
		if len(left) > 0 {
			t.Errorf("the manifest still has %v", left)
		}
	})
}
