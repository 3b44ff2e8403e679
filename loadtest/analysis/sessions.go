package analysis

import (
	"fmt"
	"math"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/workload"
	"weir/storage"
)

// Numbers of sessions per operation from which a session that clients were to keep counts as kept
// in part, or as not kept.
const (
	sessionsInPart = 0.05
	sessionsNone   = 0.5
)

// sessions computes the number of sessions that clients opened for each operation, and reports it
// if clients were to keep their sessions: a service may close each connection.
func sessions(d *steps.Run, f *Findings, c *steps.Curve) {
	made, ended, done, clients := 0.0, 0.0, int64(0), 0
	for _, s := range c.Steps {
		made += s.SessionRate * s.Duration
		clients += s.Clients
		ended += float64(s.Done + s.Errors)
		done += s.Done
	}
	if ended == 0 {
		return
	}
	each := made / ended
	f.Sessions = &each
	how := "kept in part"
	switch {
	case len(d.Plan.Populations) > 0 || d.Plan.Work.Session != workload.KeptSession || d.Plan.Work.Kind == workload.LoginWork:
		return
	case done == 0:
		f.Work = d.Plan.WorkTextWith("session to be kept")
		return
	case each < sessionsInPart, done > 2*int64(clients) && math.Round(made) <= float64(clients):
		return // few operations: each client opens a session once
	case each >= sessionsNone:
		how = "not kept"
	}
	f.Work = d.Plan.WorkTextWith(fmt.Sprintf("session %s (%s made per operation)", how, unit.Significant(each)))
}

// signing reports whether the service required signed requests, if clients of the XRootD protocol
// authenticated, and the number of times that credentials were renewed.
func signing(d *steps.Run, f *Findings, c *steps.Curve) {
	signed, ended := 0.0, 0.0
	for _, s := range c.Steps {
		signed += float64(s.Signed)
		ended += float64(s.Done + s.Errors)
	}
	switch {
	case ended == 0:
	case signed > 0:
		f.Work += fmt.Sprintf(", requests signed (%s per operation)", unit.Significant(signed/ended))
	case d.Plan.Driver == storage.XRootD && d.Plan.Auth.Method != "" && d.Plan.Auth.Method != storage.NoAuth:
		f.Work += ", requests not signed"
	}
	if f.Renewed = d.Renewed; f.Renewed > 0 {
		f.Work += ", credentials renewed " + say.Times(f.Renewed)
	}
}
