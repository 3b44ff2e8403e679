package links

import (
	"math"
	"testing"
	"time"

	"weir/monitor"
)

// The bytes of a site's hosts are compared with those of its copies, without headers, the loopback
// interface and the slaves of a bond; not if a host belongs to two sites or was not sampled all the
// time.
func TestCounted(t *testing.T) {
	t.Parallel()
	run := func(foreign float64, samples int, shared bool) (source, dest Site) {
		s := pair()
		if shared {
			s.plan.Sites[1].Hosts = s.plan.Sites[0].Hosts
			s.hosts = newHostSums(s.plan)
		}
		for i := range 100 {
			s.Link(second(float64(i), 1))
			if i >= samples {
				continue
			}
			nic := func(name string, share float64) monitor.Net {
				n := int64(1e6 * share * (1 + foreign))
				return monitor.Net{Name: name, Received: n + 66*700, PacketsIn: 700, Sent: n + 66*700, PacketsOut: 700}
			}
			for _, host := range []string{"host-A", "host-B"} {
				s.Sample(&monitor.Sample{Time: modelStart.Add(time.Duration(i+1) * time.Second), Seconds: 1, Host: host, Role: monitor.RoleServer,
					Nets: []monitor.Net{nic("lo", 5), nic("eth0", 0.5), nic("eth1", 0.5), nic("bond0", 1)}})
			}
		}
		c, _ := s.Result()
		return c.Sites[0], c.Sites[1]
	}
	for _, foreign := range []float64{0, 0.2, -0.1} {
		source, dest := run(foreign, 100, false)
		if source.HostIn != nil || dest.HostOut != nil || source.HostOut == nil || dest.HostIn == nil ||
			math.Abs(dest.HostIn.Off-foreign) > 0.001 || math.Abs(source.HostOut.Off-foreign) > 0.001 || dest.HostIn.Moved != 1e8 {
			t.Errorf("%v: %+v %+v", foreign, source.HostOut, dest.HostIn)
		}
	}
	if source, dest := run(0, 90, false); source.HostOut != nil || dest.HostIn != nil {
		t.Error("hosts without samples are compared")
	}
	if source, dest := run(0, 100, true); source.HostOut != nil || dest.HostIn != nil {
		t.Error("a host of two sites is compared")
	}
}
