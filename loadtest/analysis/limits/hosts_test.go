package limits

import (
	"testing"

	"weir/loadtest/analysis/hosts"
)

// TestShareOfUnknownCores checks that machines with an unknown number of cores are left out of the
// share.
func TestShareOfUnknownCores(t *testing.T) {
	two, one := 2.0, 1.0
	procs := func(h *hosts.HostFigure) *float64 { return h.ServerCores }
	all := []hosts.HostFigure{{Role: hosts.Server, Cores: 4, ServerCores: &two}, {Role: hosts.Server, ServerCores: &one}}
	if cores, share, whole := sideCPU(all, hosts.Server, procs); cores == nil || *cores != 3 || share != nil || whole {
		t.Errorf("%v %v %v", cores, share, whole)
	}
	half := 0.5
	all = append(all, hosts.HostFigure{Role: hosts.Server, Cores: 8, CPU: &half})
	if cores, share, whole := sideCPU(all, hosts.Server, procs); *cores != 4 || share == nil || *share != 0.5 || !whole {
		t.Errorf("%v %v %v", cores, share, whole)
	}
}
