package table

import (
	"encoding/json"
	"errors"

	"weir/loadtest/analysis/fact"
)

// k6Values are the values of a metric of k6, such as avg.
type k6Values map[string]any

// A k6Summary is a summary of the newer kind, whose metrics are a list.
type k6Summary struct {
	Metrics []struct {
		Name   string   `json:"name"`
		Values k6Values `json:"values"`
	} `json:"metrics"`
}

func (s *k6Summary) metrics() map[string]k6Values {
	all := map[string]k6Values{}
	for _, m := range s.Metrics {
		all[m.Name] = m.Values
	}
	return all
}

// plainMetrics returns the metrics of --summary-export, with the values beside the name of a metric,
// or of handleSummary, with the values in "values".
func plainMetrics(raw map[string]json.RawMessage) map[string]k6Values {
	all := map[string]k6Values{}
	for name, text := range raw {
		var in struct {
			Values k6Values `json:"values"`
		}
		var values k6Values
		if json.Unmarshal(text, &in) == nil && in.Values != nil {
			all[name] = in.Values
		} else if json.Unmarshal(text, &values) == nil {
			all[name] = values
		}
	}
	return all
}

// readK6 reads the metrics of a run of k6. Its times are in milliseconds. seconds is the length of
// the run, by which counts are divided where k6 writes no rates.
func readK6(metrics map[string]k6Values, seconds float64) (*result, error) {
	value := func(metric, name string) (float64, bool) {
		x, ok := metrics[metric][name].(float64)
		return x, ok
	}
	rate := func(metric string) (float64, bool) {
		if x, ok := value(metric, "rate"); ok {
			return x, true
		}
		x, ok := value(metric, "count")
		return x / seconds, ok && seconds > 0
	}
	most, ok := value("vus", "max")
	if !ok {
		return nil, errors.New("k6: no metric vus: the run ended before its first second, or this is no summary of k6")
	}
	r := &result{rows: []row{{Clients: most}}}
	if least, ok := value("vus", "min"); ok && least < most {
		iterations, known := rate("iterations")
		if each, ok := value("iteration_duration", "avg"); ok && known { // Little's law
			most, r.rows[0][Clients] = max(most, iterations*each/1e3), iterations*each/1e3
		}
		r.notes = append(r.notes, fact.New("warning.load_varied", "least", least, "most", most, "mean", r.rows[0][Clients]))
	}
	r.add(Clients, "vus", "")
	read := func(k Kind, metric, name, unit string, factor float64) {
		_, known := r.rows[0][k]
		if x, ok := value(metric, name); ok && !known {
			r.rows[0][k] = x * factor
			r.add(k, metric+"."+name, unit)
		}
	}
	if x, ok := rate("http_reqs"); ok {
		r.rows[0][Rate] = x
		r.add(Rate, "http_reqs", "/s")
	}
	if x, ok := rate("data_received"); ok {
		r.rows[0][Throughput] = x
		r.add(Throughput, "data_received", "B/s")
	}
	read(Latency, "http_req_duration", "avg", "ms", 1e-3)
	read(ErrorRatio, "http_req_failed", "value", "", 1)
	read(ErrorRatio, "http_req_failed", "rate", "", 1)
	if _, ok := r.rows[0][Rate]; !ok {
		return nil, errors.New("k6: no metric http_reqs: weir analyze reads runs of HTTP requests")
	}
	return r, nil
}
