package analysis

import "testing"

func TestServerCPUPerOperation(t *testing.T) {
	half, part, reports := 0.5, 0.1, []HostFigure{{Host: "localhost"}, {Service: &ServerFigure{Cores: 0.1}},
		{Service: &ServerFigure{Cores: 0.3}}}
	for name, c := range map[string]struct {
		step Step
		want float64 // 0: not known
	}{
		"processes":              {Step{ServerCores: &half, Operations: 100}, 0.005},
		"processes and reports":  {Step{ServerCores: &half, Operations: 100, Hosts: reports}, 0.005},
		"one process of several": {Step{ServerCores: &part, Operations: 100, Hosts: reports}, 0.004},
		"what the servers tell":  {Step{Operations: 100, Hosts: reports}, 0.004},
		"whole hosts, reports":   {Step{ServerCores: &half, Operations: 100, Hosts: reports, serverByHost: true}, 0.004},
		"whole hosts":            {Step{ServerCores: &half, Operations: 100, serverByHost: true}, 0},
		"nothing":                {Step{Operations: 100}, 0},
		"no operation succeeded": {Step{ServerCores: &half}, 0},
	} {
		got := c.step.serverEach()
		if got == nil && c.want != 0 || got != nil && *got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
