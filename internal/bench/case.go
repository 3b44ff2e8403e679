package main

import (
	"context"
	"fmt"
	"regexp"
	"time"
)

// A metric names one figure of a run.
type metric string

// What is measured. Throughput is payload; CPU is user and system time.
const (
	throughput metric = "throughput"        // B/s
	clientCPU  metric = "client CPU per GB" // s per 1e9 B, start of the program included
	serverCPU  metric = "server CPU per GB" // s per 1e9 B
	serverBusy metric = "server cores busy"
	rate       metric = "requests/s"
	requestCPU metric = "client CPU per request" // s
	resident   metric = "resident per client"    // B
	startTime  metric = "start of all"           // s
	lateMedian metric = "late, p50"              // s
	lateHigh   metric = "late, p99"              // s
	opTime     metric = "time per operation"     // s
	allocs     metric = "allocations per operation"
	clients    metric = "clients"
	processes  metric = "processes"
	failed     metric = "failed operations"
)

// figures are what one run showed.
type figures map[metric]float64

// A side is one of the programs that are compared.
type side struct {
	name string
	run  func(ctx context.Context) (figures, error)
}

// A bar is what must hold: the metric of side a, over that of side b if there
// is one, is at most or at least a limit.
type bar struct {
	metric metric
	a, b   string
	least  bool // at least; else at most
	limit  float64
	why    string // what a reader should know where it is not met
}

// ratio returns what the bar judges in one round.
func (b bar) ratio(round map[string]figures) float64 {
	v := round[b.a][b.metric]
	if b.b != "" {
		v /= round[b.b][b.metric]
	}
	return v
}

func (b bar) met(v float64) bool {
	if b.least {
		return v >= b.limit
	}
	return v <= b.limit
}

// A benchmark is one comparison.
type benchmark struct {
	name    string // as -case matches it
	title   string
	about   string // what exactly ran, for the page
	metrics []metric
	bars    []bar
	rounds  int // at most, of what takes minutes; 0: as many as are wanted
	// setup starts what all rounds share. What it starts is stopped by r
	// after the last round.
	setup func(ctx context.Context, r *rig) ([]side, error)
}

// A result is what a benchmark showed.
type result struct {
	benchmark
	sides  []string
	rounds []map[string]figures // of each side
}

// compare runs the cases that pick matches, and says on the rig's log how
// they go.
func compare(ctx context.Context, r *rig, pick *regexp.Regexp, rounds int, k *kept) ([]result, error) {
	var all []result
	for _, c := range cases(r.scale) {
		if !pick.MatchString(c.name) {
			continue
		}
		rounds := rounds
		if c.rounds > 0 {
			rounds = min(rounds, c.rounds)
		}
		found, ok := k.find(c, rounds)
		if !ok {
			var err error
			if found, err = compareOne(ctx, r, c, rounds); err == nil {
				err = k.add(found)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
		}
		all = append(all, found)
	}
	return all, nil
}

func compareOne(ctx context.Context, r *rig, c benchmark, rounds int) (res result, err error) {
	begin := time.Now()
	defer func() {
		if e := r.stopAll(); err == nil {
			err = e
		}
		r.logf("%-18s %.0f s\n", c.name, time.Since(begin).Seconds())
	}()
	sides, err := c.setup(ctx, r)
	if err != nil {
		return res, err
	}
	res.benchmark = c
	for _, s := range sides {
		res.sides = append(res.sides, s.name)
	}
	for n := range rounds {
		round := map[string]figures{}
		for i, s := range sides {
			if n%2 == 1 { // what runs on a machine that warms up or slows down takes turns, too
				s = sides[len(sides)-1-i]
			}
			f, err := s.run(ctx)
			for again := 0; err != nil && again < 2 && ctx.Err() == nil; again++ { // a starved machine may miss a run or two
				r.logf("  %-18s %-16s  again, after: %v\n", c.name, s.name, err)
				f, err = s.run(ctx)
			}
			if err != nil {
				return res, fmt.Errorf("%s, round %d: %w", s.name, n+1, err)
			}
			round[s.name] = f
			r.logf("  %-18s %-16s%s\n", c.name, s.name, line(c.metrics, f))
		}
		res.rounds = append(res.rounds, round)
	}
	return res, nil
}

func line(metrics []metric, f figures) string {
	text := ""
	for _, m := range metrics {
		if v, ok := f[m]; ok {
			text += fmt.Sprintf("  %s %s", m, show(m, v))
		}
	}
	return text
}
