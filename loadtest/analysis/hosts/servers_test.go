package hosts

import (
	"testing"

	"weir/monitor"
)

// TestServerFigures checks each server's share, the rates by the part of a sample that lies in the
// measurement time, and that a figure is missing if it would be counted late.
func TestServerFigures(t *testing.T) {
	of := func(v monitor.Service) HostFigure {
		h := &hostSum{}
		h.add(&monitor.Sample{Seconds: 2, Service: &v}, 1)
		h.add(&monitor.Sample{Seconds: 1, Service: &v}, 1)
		return h.figure().HostFigure
	}
	hosts := []HostFigure{
		of(monitor.Service{Kind: monitor.Redirector, User: 1, Logins: 4, Redirects: 20, Late: true, Sent: 100}),
		of(monitor.Service{Kind: monitor.DataServer, User: 2, System: 1, Sent: 200, Queue: 3, Ops: map[string]int64{"read": 2, "open": 2}}),
	}
	ShareServers(hosts)
	rd, ds := hosts[0].Service, hosts[1].Service
	if rd.Cores != 0.75 || *rd.Share != 0.25 || rd.Logins != 3 || rd.Redirects != 15 || rd.Sent != nil || rd.Operations != nil {
		t.Errorf("redirector %+v", rd)
	}
	if ds.Cores != 2.25 || *ds.Share != 0.75 || *ds.Sent != 150 || *ds.Operations != 3 || ds.Queue != 3 {
		t.Errorf("data server %+v", ds)
	}
}
