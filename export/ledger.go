package export

import (
	"strconv"
	"time"

	"weir/analysis"
	"weir/measure"
	"weir/results"
)

// A ledger keeps what a run's metrics say. It is filled line by line, in the
// order of a Follower. The seconds of the clients are told when the next one
// begins, since only then all their lines are there: so the same points come of
// a run that goes on and of one that is over.
type ledger struct {
	t                      *tables
	bounds                 []float64
	base                   []Label
	sink                   sink  // nil: nobody is told
	since                  int64 // points before are not told
	now                    int64 // time of the latest point
	clientsAt, hostsAt     int64 // how far clients and hosts were told
	clientsCame, hostsCame bool  // since somebody asked what is settled
	all                    []*series
	mute                   int // series that there was no room for

	about moment
	info  *entity[moment]
	spans map[string]*span // by kind of operation

	planned map[int]measure.Event // by step
	coming  []measure.Event       // later than the second that is open
	begun   bool                  // a second is open
	dirty   []*entity[measure.Interval]
	timed   []*span
}

// A span is the durations of one kind of operation.
type span struct {
	*entity[measure.Sum]
	second measure.Sum
}

// newLedger begins the ledger of run. Points before since are not told.
func newLedger(run *results.Run, to sink, since time.Time) *ledger {
	l := &ledger{
		t: newTables(), bounds: bounds(), sink: to, base: []Label{{"run", run.About.Run}, {"scenario", run.Plan.Name}},
		spans: map[string]*span{}, planned: map[int]measure.Event{},
	}
	if !since.IsZero() {
		l.since = since.UnixMilli()
	}
	l.about.start = float64(run.About.Start.UnixMilli()) / 1000
	l.info = l.t.info.of(l, run.Plan.Target, string(run.Plan.Work.Kind), string(run.Plan.Model), string(run.Plan.Driver), run.About.Weir)
	return l
}

// takers fill the ledger.
func (l *ledger) takers() results.Takers {
	return results.Takers{Interval: l.interval, Sample: l.sample, Event: l.event}
}

// findings tells what the analysis says, at the time of the last point.
func (l *ledger) findings(f *analysis.Findings) {
	at := l.now
	for i := range f.Curve {
		s := &f.Curve[i]
		l.t.curve.of(l, strconv.Itoa(s.Step), strconv.Itoa(s.Clients)).say(l, s, at, at)
	}
	l.t.found.of(l).say(l, f, at, at)
	for _, e := range l.t.limit.things {
		e.forget()
	}
	for i := range f.Bottleneck {
		b := &f.Bottleneck[i]
		l.t.limit.of(l, b.Resource, b.Host, b.Side).take(l, b)
	}
	for _, e := range l.t.limit.things {
		e.tell(l, at, at)
	}
	for i := range f.Thresholds {
		j := &f.Thresholds[i]
		l.t.judgment.of(l, j.Threshold).say(l, j, at, at)
	}
}

// end tells the last second, all events, and what the analysis says, which may
// be nil, and that nothing more comes.
func (l *ledger) end(f *analysis.Findings) {
	l.flush()
	l.happen(time.Time{})
	if f != nil {
		l.findings(f)
	}
	at := l.now + 1000
	for _, s := range l.all {
		if s.told {
			l.put(s, at, true)
		}
	}
}
