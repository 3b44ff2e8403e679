package main

import (
	"weir/analysis"
	"weir/analysis/stats"
	"weir/results"
	"weir/search"
)

// stepsOf returns what the steps of a search gave that were held to their ends,
// as those of the given numbers were for sure. They are compared by payload, or by
// operations where none was moved.
func stepsOf(run *results.Run, sure func(number int) bool) ([]search.Step, error) {
	p, err := run.Progress()
	if err != nil {
		return nil, err
	}
	whole := map[int]bool{}
	for _, b := range p.Steps {
		whole[b.Number] = b.Whole() || b.Passed || sure(b.Number)
	}
	curve, measure, err := analysis.Curve(run)
	if err != nil {
		return nil, err
	}
	var steps []search.Step
	for i := range curve {
		if s := &curve[i]; whole[s.Step] && s.Clients > 0 {
			steps = append(steps, searched(s, measure))
		}
	}
	return steps, nil
}

// searched is what a search wants to know of a step.
func searched(s *analysis.Step, measure string) search.Step {
	out := search.Step{Clients: s.Clients, Batches: s.Batches, Done: s.Done, Hold: s.Hold, Failed: s.ErrorRatio, Yield: s.Operations}
	low, high := s.OperationsLow, s.OperationsHigh
	if measure == analysis.Throughput {
		out.Yield, low, high = s.Throughput, s.ThroughputLow, s.ThroughputHigh
	}
	if low != nil && high != nil { // the lower end is cut off at zero
		out.Error = max(0, *high-out.Yield) / stats.Student(float64(s.Batches-1))
	}
	if s.Latency != nil {
		out.Latency = s.Latency.Mean
	}
	return out
}
