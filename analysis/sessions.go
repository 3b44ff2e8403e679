package analysis

import (
	"fmt"

	"weir/internal/unit"
)

// From so many sessions per operation on a session that was to be kept was kept
// in part only, or not at all.
const (
	sessionsInPart = 0.05
	sessionsNone   = 0.5
)

// sessions counts the sessions that clients made for each operation, and says so
// where they were to keep theirs: a service may close each connection.
func (d *data) sessions(f *Findings) {
	made, ended := 0.0, 0.0
	for i := range f.Curve {
		s := &f.Curve[i]
		made += s.SessionRate * s.Hold
		ended += float64(s.Done + s.Errors)
	}
	if ended == 0 {
		return
	}
	each := made / ended
	f.Sessions = &each
	if d.plan.Work.Session != "kept" || d.plan.Work.Kind == "login" || each < sessionsInPart {
		return
	}
	how := "kept in part"
	if each >= sessionsNone {
		how = "not kept"
	}
	f.Work = d.plan.WorkTextWith(fmt.Sprintf("session %s (%s made per operation)", how, unit.Significant(each)))
}
