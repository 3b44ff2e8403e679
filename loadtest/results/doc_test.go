package results

import (
	"encoding/json"
	"testing"
	"time"

	"weir/internal/require"
	"weir/link"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest/keys"
	"weir/loadtest/scenario"
	"weir/monitor"
)

// The specification of the format and the types of the format must have the same keys.
func TestDocumentedKeys(t *testing.T) {
	var h measure.Histogram
	h.Record(time.Second)
	written, err := json.Marshal(h)
	require.NoError(t, err)
	var histogram map[string]any
	require.NoError(t, json.Unmarshal(written, &histogram))
	for section, types := range map[string][]any{
		"about.json": {About{}, Clock{}, measure.Scratch{}, Links{}},
		"plan.json": {scenario.Plan{}, scenario.Origin{}, monitor.BalancerConfig{}, scenario.Step{}, scenario.Find{}, link.Named{}, link.Spec{},
			link.Outage{}},
		"intervals.jsonl": {measure.Interval{}, measure.Site{}, histogram},
		"hosts.jsonl": {monitor.Sample{}, monitor.CPU{}, monitor.Memory{}, monitor.Disk{}, monitor.Net{}, monitor.TCP{}, monitor.Proc{},
			monitor.Service{}, monitor.Link{}, monitor.Balancer{}, monitor.Balanced{}, monitor.Transfers{}, monitor.TransfersSpan{}, monitor.Quota{},
			link.Traffic{}, link.Quantiles{}},
		"events.jsonl":    {measure.Event{}, measure.Worker{}, measure.Scratch{}, measure.StoppedStep{}, measure.Command{}, measure.Service{}},
		"manifest.jsonl":  {manifestLine{}},
		"transfers.jsonl": {Transfer{}},
		"links.jsonl":     {LinkInterval{}},
	} {
		t.Run(section, func(t *testing.T) { keys.Compare(t, "../../docs/results.md", section, types...) })
	}
}
