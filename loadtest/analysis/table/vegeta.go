package table

import (
	"encoding/json"
	"errors"
	"fmt"
)

// vegetaLatencies are the latencies of a report of vegeta, in nanoseconds.
type vegetaLatencies struct {
	Mean float64 `json:"mean"`
}

// readVegeta reads "vegeta report -type=json". Vegeta sends at a rate, whatever the service does: the
// load is this rate.
func readVegeta(raw []byte) (*result, error) {
	var report struct {
		Latencies vegetaLatencies         `json:"latencies"`
		In        struct{ Total float64 } `json:"bytes_in"`
		Out       struct{ Total float64 } `json:"bytes_out"`
		Duration  float64                 `json:"duration"`
		Wait      float64                 `json:"wait"`
		Requests  float64                 `json:"requests"`
		Rate      float64                 `json:"rate"`
		Success   float64                 `json:"success"`
	}
	if err := json.Unmarshal(raw, &report); err != nil {
		return nil, fmt.Errorf("vegeta: %w", err)
	}
	seconds := (report.Duration + report.Wait) / 1e9
	if report.Requests == 0 || !(seconds > 0) {
		return nil, errors.New("vegeta: the report has no requests")
	}
	r := &result{open: true, rows: []row{{
		Clients: report.Rate, Rate: report.Requests * report.Success / seconds, Latency: report.Latencies.Mean / 1e9,
		Throughput: (report.In.Total + report.Out.Total) / seconds, ErrorRatio: 1 - report.Success,
	}}}
	r.add(Clients, "rate", "arrivals/s")
	r.add(Rate, "requests x success / time", "/s")
	r.add(Throughput, "bytes_in + bytes_out / time", "B/s")
	r.add(Latency, "latencies.mean", "ns")
	r.add(ErrorRatio, "1 - success", "")
	return r, nil
}
