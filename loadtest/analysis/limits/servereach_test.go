package limits

import (
	"testing"

	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/steps"
)

func TestServerCPUPerOperation(t *testing.T) {
	half, part, reports := 0.5, 0.1, []hosts.HostFigure{{Host: "localhost"}, {Service: &hosts.ServerFigure{Cores: 0.1}},
		{Service: &hosts.ServerFigure{Cores: 0.3}}}
	for name, c := range map[string]struct {
		step  steps.Figures
		want  float64 // 0: not known
		whole bool    // the CPU time is of whole hosts
	}{
		"processes":              {steps.Figures{ServerCores: &half, Operations: 100}, 0.005, false},
		"processes and reports":  {steps.Figures{ServerCores: &half, Operations: 100, Hosts: reports}, 0.005, false},
		"one process of several": {steps.Figures{ServerCores: &part, Operations: 100, Hosts: reports}, 0.004, false},
		"what the servers tell":  {steps.Figures{Operations: 100, Hosts: reports}, 0.004, false},
		"whole hosts, reports":   {steps.Figures{ServerCores: &half, Operations: 100, Hosts: reports}, 0.004, true},
		"whole hosts":            {steps.Figures{ServerCores: &half, Operations: 100}, 0, true},
		"nothing":                {steps.Figures{Operations: 100}, 0, false},
		"no operation succeeded": {steps.Figures{ServerCores: &half}, 0, false},
	} {
		got := serverEach(&steps.Working{Figures: &c.step, ServerByHost: c.whole})
		if got == nil && c.want != 0 || got != nil && *got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
