package search

import (
	"weir/internal/stats"
	"weir/loadtest/analysis"
	"weir/loadtest/results"
)

// StepsOf returns the results of the steps of a search that were held to their ends; steps whose
// numbers are sure are taken to be. They are compared by payload, or by operations if no payload
// was moved.
func StepsOf(run *results.Run, sure func(number int) bool) ([]Step, error) {
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
	var steps []Step
	for i := range curve {
		if s := &curve[i]; whole[s.Step] && s.Clients > 0 {
			steps = append(steps, stepOf(s, measure))
		}
	}
	return steps, nil
}

// stepOf converts a step of the analysis to a step of the search.
func stepOf(s *analysis.Step, measure string) Step {
	out := Step{Clients: s.Clients, Batches: s.Batches, Done: s.Done, Duration: s.Duration, Failed: s.ErrorRatio, Yield: s.Operations}
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
