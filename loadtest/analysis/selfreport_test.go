package analysis

import (
	"testing"

	"weir/monitor"
)

// TestServerFigures: each server's share, rates by the part of a sample that
// lies in the measurement time, and no figure where it would be counted late.
func TestServerFigures(t *testing.T) {
	of := func(v monitor.Service) HostFigure {
		h := &hostSum{}
		h.add(&monitor.Sample{Seconds: 2, Service: &v}, 1)
		h.add(&monitor.Sample{Seconds: 1, Service: &v}, 1)
		return h.figure()
	}
	hosts := []HostFigure{
		of(monitor.Service{Kind: monitor.Redirector, User: 1, Logins: 4, Redirects: 20, Late: true, Sent: 100}),
		of(monitor.Service{Kind: monitor.DataServer, User: 2, System: 1, Sent: 200, Queue: 3, Ops: map[string]int64{"read": 2, "open": 2}}),
	}
	shareServers(hosts)
	rd, ds := hosts[0].Service, hosts[1].Service
	if rd.Cores != 0.75 || *rd.Share != 0.25 || rd.Logins != 3 || rd.Redirects != 15 || rd.Sent != nil || rd.Operations != nil {
		t.Errorf("redirector %+v", rd)
	}
	if ds.Cores != 2.25 || *ds.Share != 0.75 || *ds.Sent != 150 || *ds.Operations != 3 || ds.Queue != 3 {
		t.Errorf("data server %+v", ds)
	}
}

// TestShareOfUnknownCores: cores of machines that nobody counted make no share.
func TestShareOfUnknownCores(t *testing.T) {
	two, one := 2.0, 1.0
	procs := func(h *HostFigure) *float64 { return h.ServerCores }
	hosts := []HostFigure{{Role: server, Cores: 4, ServerCores: &two}, {Role: server, ServerCores: &one}}
	if cores, share, whole := sideCPU(hosts, server, procs); cores == nil || *cores != 3 || share != nil || whole {
		t.Errorf("%v %v %v", cores, share, whole)
	}
	half := 0.5
	hosts = append(hosts, HostFigure{Role: server, Cores: 8, CPU: &half})
	if cores, share, whole := sideCPU(hosts, server, procs); *cores != 4 || share == nil || *share != 0.5 || !whole {
		t.Errorf("%v %v %v", cores, share, whole)
	}
}
