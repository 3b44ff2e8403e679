package live

import (
	"context"
	"fmt"
	"io"
	"time"

	"weir/internal/redact"
	"weir/internal/say"
	"weir/internal/screen"
	"weir/internal/unit"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/conduct"
	"weir/loadtest/measure"
	"weir/monitor"
)

// ChallengeOptions configure a ChallengeView.
type ChallengeOptions struct {
	Out       io.Writer // where people read
	Challenge *challenge.Challenge
	Dir       string          // run directory
	Finish    context.Context // ends when the challenge is to end early
	Stream    *Stream         // nil: no stream
	Secrets   *redact.Values  // removed from all lines; nil: no secrets are known
}

// A ChallengeView shows a data challenge on a terminal: lines for its events and, below these, rows
// that move. If no row can move, it writes a line every half minute. It implements
// run.ChallengeView.
type ChallengeView struct {
	ChallengeOptions
	terminal

	status conduct.Status // guarded by mu
}

// NewChallenge returns a view of a challenge. Its caller calls Start and Stop.
func NewChallenge(o ChallengeOptions) *ChallengeView {
	return &ChallengeView{ChallengeOptions: o, terminal: newTerminal(o.Out)}
}

// Start shows the plan.
func (v *ChallengeView) Start() {
	c := v.Challenge
	rate := 0.0
	for i := range c.Links {
		rate += float64(c.Links[i].Rate)
	}
	between := fmt.Sprintf("%s between %s", say.Plural(len(c.Links), "link"), say.Plural(len(c.Sites), "site"))
	screen.Paragraph(v.lines, "", "%s: %s, %s at 100%%, %s, %v", c.Name, between, unit.Bits(rate/8), say.Plural(len(c.Profile), "stage"),
		unit.Duration(c.Duration()))
	screen.Paragraph(v.lines, "", "measuring into %s; Ctrl-C stops all copies within 10 s, removes them and still reports", v.Dir)
	v.Stream.Write(Line{Event: "start", Run: v.Dir, Start: &Start{Name: c.Name, Target: between, Steps: len(c.Profile),
		Planned: c.Duration().Seconds(), Processes: 1}})
	v.stopMoving = v.screen.Animate(v.rows)
}

// Load implements conduct.View.
func (v *ChallengeView) Load() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.task, v.loading, v.written = screen.Task{}, true, time.Now()
}

// End implements conduct.View.
func (v *ChallengeView) End() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.task = screen.Task{}
}

// Advance implements conduct.View.
func (v *ChallengeView) Advance(what string, done, total int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.task.Advance(what, done, total)
	if v.due() {
		_, _ = fmt.Fprintf(v.lines, " %s\n", v.task.Progress(v.written).Where)
	}
}

// Sample implements monitor.Sink.
func (v *ChallengeView) Sample(*monitor.Sample) error { return nil }

// Status implements conduct.View.
func (v *ChallengeView) Status(s conduct.Status) {
	v.Stream.Write(Line{Event: "status", Run: v.Dir, Time: s.Time, Status: &s})
	v.mu.Lock()
	defer v.mu.Unlock()
	v.status = s
	if v.due() {
		screen.Paragraph(v.lines, "  ", "%s %s; %s", s.Time.Local().Format(time.TimeOnly), v.position(), v.text())
	}
}

// Event implements conduct.View.
func (v *ChallengeView) Event(e measure.Event) {
	e.Text = v.Secrets.Text(e.Text)
	v.Stream.event(v.Dir, e)
	switch {
	case e.Kind == measure.EventEnd && e.Ending().Outcome == measure.Complete, e.Kind == measure.EventRun:
		return
	case e.Kind == measure.EventError && e.On != "":
		e.Text = fmt.Sprintf("%v at %s: %s", e.Class, e.On, e.Text)
	case e.Kind == measure.EventError:
		e.Text = fmt.Sprintf("%v: %s", e.Class, e.Text)
	}
	screen.Paragraph(v.lines, "  ", "%s %s", e.Time.Local().Format(time.TimeOnly), e.Text)
}

// position returns the stage.
func (v *ChallengeView) position() string {
	s := &v.status
	if s.Ending {
		return "the last copies end"
	}
	return fmt.Sprintf("stage %d of %d, %s", s.Stage, s.Stages, unit.Percent(s.Share))
}

// text returns the state of the links and copies.
func (v *ChallengeView) text() string {
	s := &v.status
	text := fmt.Sprintf("%s of %s", unit.Bits(s.Achieved), unit.Bits(s.Target))
	if s.Links > 0 {
		text += fmt.Sprintf("; %d of %s held", s.Held, say.Plural(s.Links, "link"))
	}
	text += fmt.Sprintf("; %d in flight", s.Flight)
	if s.Failed > 0 {
		text += "; " + v.look.Paint(screen.Red, fmt.Sprintf("%d failed", s.Failed))
	}
	if s.Worst != "" && s.Held < s.Links {
		text += fmt.Sprintf("; lowest: %s %s", s.Worst, unit.Percent(s.WorstShare))
	}
	return text
}

// rows returns the rows that move.
func (v *ChallengeView) rows(columns int) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if v.task.What != "" || !v.loading || v.status.Stages == 0 {
		p := v.task.Progress(now)
		if p.Where == "" {
			p.Where = "preparing"
		}
		return []string{p.Row(columns-3, v.look)}
	}
	s := &v.status
	if s.Ending { // the rest of the profile is not held
		p := screen.Progress{Where: v.position(), Now: now, Share: screen.Unknown, Left: screen.Unknown}
		return []string{" " + v.text(), p.Row(columns-3, v.look)}
	}
	left := max(time.Duration(s.Left*float64(time.Second))-now.Sub(s.Time), 0)
	p := screen.Progress{Where: v.position(), Now: now, Left: left, Share: 1}
	if s.Length > 0 {
		p.Share = 1 - left.Seconds()/s.Length
	}
	return []string{" " + v.text(), p.Row(columns-3, v.look)}
}
