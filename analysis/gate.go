package analysis

import (
	"fmt"
	"math"
	"time"

	"weir/measure"
	"weir/scenario"
	"weir/storage"
)

// A Gate holds a run against those of its thresholds that may stop it ("or
// stop"), while it goes on. When the hold of a step is over, the step is judged
// as Of judges it. During the hold it is judged about every ten seconds, on
// what there is of it, and only what is broken beyond doubt counts. It is not
// safe for concurrent use.
type Gate struct {
	thresholds []scenario.Threshold
	texts      []string
	steps      map[int]scenario.Step
	sum        soFar
	ended      int // the last step that was judged as a whole
}

// During a hold a step is judged every so often, if so many operations ended.
const (
	gateEvery = 10 * time.Second
	gateLeast = 20
)

// NewGate returns the gate of a plan, nil if none of its thresholds may stop
// it. One that cannot be read is left to Of.
func NewGate(p *scenario.Plan) *Gate {
	g := &Gate{steps: map[int]scenario.Step{}}
	for _, text := range p.Thresholds {
		if t, err := scenario.ParseThreshold(text); err == nil && t.Stop {
			g.thresholds, g.texts = append(g.thresholds, t), append(g.texts, text)
		}
	}
	if len(g.thresholds) == 0 {
		return nil
	}
	for _, s := range p.Steps {
		g.steps[s.Number] = s
	}
	return g
}

// Saw takes the next interval of the run. It returns the text of a
// ThresholdEvent if the run shall end now, else "". Intervals of one second
// come one after the other; what a second shows is judged when the next begins.
func (g *Gate) Saw(v *measure.Interval) (broken string) {
	switch {
	case g.sum.number > 0 && (v.Step != g.sum.number || v.Phase != measure.Hold):
		broken = g.End()
	case !v.Start.Equal(g.sum.at) && g.sum.span >= g.sum.next && g.sum.ended() >= gateLeast:
		g.sum.next = g.sum.span + gateEvery.Seconds()
		broken = g.judge(func(t scenario.Threshold) figure { return g.sum.surely(t) })
	}
	if v.Phase == measure.Hold && v.Step > g.ended {
		g.sum.add(v)
	}
	return broken
}

// End tells that the hold of the current step is over, if there is one, and
// returns as Saw does.
func (g *Gate) End() (broken string) {
	if g.sum.number == 0 {
		return ""
	}
	s := g.sum.step()
	broken = g.judge(func(t scenario.Threshold) figure { return s.figure(t.Measure.Name) })
	g.ended, g.sum = max(g.ended, g.sum.number), soFar{}
	return broken
}

// judge returns what the first broken threshold says of the current step. What
// was not measured does not stop a run.
func (g *Gate) judge(value func(scenario.Threshold) figure) string {
	now, step := g.sum.step(), g.steps[g.sum.number]
	clients := step.Clients
	if step.Number == 0 { // a pilot's own
		clients = int(math.Round(now.ActiveClients))
	}
	load := Step{Clients: clients, Rate: float64(step.Rate)}.load()
	for i, t := range g.thresholds {
		if !t.Holds(clients, float64(step.Rate)) {
			continue
		}
		if v := value(t); v.known && !t.Met(v.value) {
			return fmt.Sprintf("%s: step %d was stopped after %.0f s of hold: %s with %s", g.texts[i], g.sum.number, g.sum.span,
				t.Measure.Format(now.figure(t.Measure.Name).value), load)
		}
	}
	return ""
}

// load is what a step was planned to be, in words.
func (s Step) load() string {
	model := ""
	if s.Rate > 0 {
		model = "open"
	}
	return (&Findings{Model: model}).at(&s)
}

// soFar is what was measured of a step's hold. The zero value is that of none.
type soFar struct {
	total
	at   time.Time // start of the newest second
	next float64   // seconds of hold after which it is judged next
}

func (s *soFar) ended() int64 { return s.done + s.errors }

func (s *soFar) add(v *measure.Interval) {
	if s.number == 0 {
		*s = soFar{total: total{number: v.Step, failed: map[storage.Class]int64{}}, next: gateEvery.Seconds()}
	}
	if !v.Start.Equal(s.at) || len(s.seconds) == 0 {
		s.at = v.Start
		s.span += v.Seconds
		s.seconds = append(s.seconds, second{start: v.Start})
	}
	s.seconds[len(s.seconds)-1].add(v)
	s.total.add(v)
	s.addTimes(v)
}
