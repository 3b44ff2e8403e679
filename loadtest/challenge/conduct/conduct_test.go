package conduct

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/control"
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

// TestLyingSite: the bytes of copies that a site reports and does not have are taken off the rate of
// the link in the second in which their verification fails, and are due again.
func TestLyingSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, testChallenge(stage(60*time.Second, 1)), 4*fakeRate, 4*fakeRate, 4*fakeRate)
		r.inject.lies = func(link int) bool { return link == 0 }
		again := int64(0)
		r.Controller = func(o control.Options) Controller { return &watched{newPacer(o), &again} }
		require.NoError(t, Run(r.Config))
		got := r.check(t, r.inject.moved)
		wrong := map[string]int64{}
		for _, l := range got.links {
			wrong[l.Source+l.Dest] += l.Wrong
		}
		if wrong["AB"] != r.inject.moved[0] || wrong["BC"]+wrong["CA"] > 0 || wrong["AB"] == 0 {
			t.Errorf("wrong bytes: %v; %d were reported by the site without files", wrong, r.inject.moved[0])
		}
		require.Near(t, "bytes that the controller was to have moved again, over these", float64(again)/float64(wrong["AB"]), 1, .05)
		last := r.view.status[50] // one a second
		require.Near(t, "achieved rate of all links over that of the two with files", last.Achieved/(2*fakeRate), 1, .1)
		if last.Worst != "A to B" || last.WorstShare > .1 || last.Held != 2 {
			t.Errorf("%+v", last)
		}
	})
}

// watched sums the bytes that a controller is to have moved again.
type watched struct {
	Controller
	again *int64
}

func (w *watched) Decide(now time.Duration, seen []control.Seen) []control.Decision {
	for i := range seen {
		*w.again += seen[i].Wrong
	}
	return w.Controller.Decide(now, seen)
}

// TestSlowDisk: a copy is removed when its final line is on stable storage, also if that takes seconds;
// one sync serves many copies. If it fails, the challenge ends with its error.
func TestSlowDisk(t *testing.T) {
	for name, failure := range map[string]error{"slow": nil, "broken": errors.New("input/output error")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, testChallenge(stage(40*time.Second, 1)), 4*fakeRate, 4*fakeRate, 4*fakeRate)
				out, err := results.Create(r.Dir, r.Plan, r.About)
				require.NoError(t, err)
				s := newSession(r.Config)
				s.record(out)
				syncs, saved := 0, map[string]bool{}
				s.commits.sync = func() error {
					lines := readRecord(t, r.Dir).transfers // that the disk has at the beginning
					time.Sleep(3 * time.Second)
					if syncs++; syncs > 3 && failure != nil {
						return failure
					}
					r.sites.mu.Lock()
					defer r.sites.mu.Unlock()
					for _, x := range lines {
						saved[x.Dest+"/"+x.File] = true
					}
					return out.SyncTransfers()
				}
				unsaved := 0
				r.sites.removing = func(path string) {
					if !saved[path] && !strings.HasSuffix(path, "source.dat") {
						unsaved++
					}
				}
				err = s.run()
				if failure != nil {
					if !errors.Is(err, failure) {
						t.Errorf("error %v, want %v", err, failure)
					}
					return
				}
				require.NoError(t, err)
				if n := len(saved); unsaved > 0 || n < 100 || syncs > 20 {
					t.Errorf("%d copies were removed before their lines were saved, of %d with %d syncs", unsaved, n, syncs)
				}
				if left := r.sites.left(); len(left) > 0 {
					t.Errorf("left at the sites: %v", left)
				}
			})
		})
	}
}

// TestSteppedClock: times of copies that injectors read after a step of the machine's clock are on the
// clock of the challenge.
func TestSteppedClock(t *testing.T) {
	s := newSession(Config{Plan: Plan(testChallenge(stage(time.Minute, 1)))})
	s.clock.wall = s.clock.wall.Add(-time.Hour) // the clock was an hour behind at the beginning
	now := s.clock.now()
	s.ledger = newLedger(timeline{s.c, now}, 3, now)
	s.ledger.start([]inject.Copy{{ID: 1, Source: inject.File{Size: 100}}}, now)
	s.ledger.step(now.Add(time.Minute))
	require.NoError(t, s.report(&inject.Report{ID: 1, At: time.Now(), State: inject.Running, Begin: time.Now(), Moved: 40}))
	if c := s.ledger.copies[1]; c.begin.Sub(c.asked).Abs() > 30*time.Second || c.last.Sub(c.asked).Abs() > 30*time.Second {
		t.Errorf("requested %v, begun %v, reported %v", c.asked, c.begin, c.last)
	}
}

// TestForeignFiles: files that are at the paths of copies before stay, and the challenge goes on.
func TestForeignFiles(t *testing.T) {
	for _, vague := range []bool{false, true} {
		testForeignFiles(t, vague)
	}
}

func testForeignFiles(t *testing.T, vague bool) {
	synctest.Test(t, func(t *testing.T) {
		c := testChallenge(stage(20*time.Second, 1))
		r := newRig(t, c, 4*fakeRate, 4*fakeRate, 4*fakeRate)
		r.inject.vague = vague
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
		t.Run(name, func(t *testing.T) { testResume(t, c, 0) })
	}
	c := testChallenge(profile...)
	c.Inject.By = challenge.FTS
	t.Run("late reports", func(t *testing.T) { testResume(t, c, 15*time.Second) })
}

// testResume kills and resumes a challenge. With a lag, its service reports ends only, and late.
func testResume(t *testing.T, c *challenge.Challenge, lag time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		rates := []float64{4 * fakeRate, 4 * fakeRate, fakeRate / 4}
		for range len(c.Links) - 3 {
			rates = append(rates, fakeRate)
		}
		r := newRig(t, c, rates...)
		r.inject.mute, r.inject.lag = lag > 0, lag
		killed := errors.New("killed")
		kill(t, r, 50*time.Second, killed)
		before := r.inject
		r.again()
		r.inject.mute, r.inject.lag = lag > 0, lag
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
		if lag > 0 { // bytes of copies that were broken off are unknown
			want = 0
			for _, x := range got.transfers {
				want += x.Moved
			}
		}
		require.Near(t, "bytes in links.jsonl over those moved", float64(moved)/float64(want), 1, .03)
		held := 0.0
		for _, iv := range got.intervals {
			if iv.Phase == measure.Measured {
				held += iv.Seconds
			}
		}
		require.Near(t, "seconds held", held, 90, .5)
		begun, started, done, ended := int64(0), 0, int64(0), 0
		for _, iv := range got.intervals {
			begun, done = begun+iv.Begun, done+iv.Done
		}
		for _, l := range got.links {
			started, ended = started+l.Started, ended+l.Done
		}
		arrived := 0
		for _, x := range got.transfers {
			if x.Done {
				arrived++
			}
		}
		if done != int64(arrived) || ended != arrived {
			t.Errorf("%d copies are done by intervals.jsonl and %d by links.jsonl, %d have arrived", done, ended, arrived)
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

// TestServiceIsAway: a challenge that is resumed waits for its service, a new one reports the error.
func TestServiceIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, testChallenge(stage(30*time.Second, 1)), fakeRate, fakeRate, fakeRate)
		r.inject.away = time.Now().Add(time.Minute)
		if err := Run(r.Config); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a new challenge: %v", err)
		}
		r.again()
		kill(t, r, 20*time.Second, errors.New("killed"))
		r.again()
		r.inject.away = time.Now().Add(time.Minute)
		require.NoError(t, Resume(r.Config))
		if left := r.sites.left(); len(left) > 0 {
			t.Errorf("left at the sites: %v", left)
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

// TestQueuedAgain: a copy that its service tries again waits in the queue once more.
func TestQueuedAgain(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := newLedger(timeline{testChallenge(stage(time.Hour, 1)), begin}, 3, begin)
	l.start([]inject.Copy{{ID: 1, Link: 1, Source: inject.File{Size: 100}}}, begin)
	states := []inject.State{inject.Queued, inject.Running, inject.Queued, inject.Queued, inject.Running, inject.Queued, inject.Failed}
	for n, state := range states {
		now := begin.Add(time.Duration(n+1) * time.Second)
		l.step(now)
		l.report(&inject.Report{ID: 1, State: state, Moved: -1, At: now}, now)
		want := 0
		if state == inject.Queued {
			want = 1
		}
		if got := l.links[1].seen.Queued; got != want {
			t.Errorf("report %d, %v: %d copies in the queue, want %d", n, state, got, want)
		}
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
