package validity

import (
	"testing"

	"weir/loadtest/analysis/hosts"
)

// TestHostsAreSummed checks that two servers with half of the traffic each agree in their sum.
func TestHostsAreSummed(t *testing.T) {
	counts := func(second float64) []count {
		var all []count
		for _, h := range []struct {
			host           string
			there, seconds float64
		}{{"a", 50e6, 10}, {"b", second, 10}} {
			all = append(all, count{of: source{"interface", "eth0", h.host}, role: hosts.Server, shared: true, clients: 100e6, there: h.there,
				seconds: h.seconds},
				count{of: source{"interface", hosts.Loopback, h.host}, role: hosts.Server, shared: true, clients: 100e6, there: 7e6,
					seconds: h.seconds})
		}
		return append(all, count{of: source{"interface", "eth0", "load"}, role: hosts.Client, shared: true, clients: 100e6,
			there: 99e6, seconds: 10})
	}
	got := together(counts(51e6))
	if len(got) != 2 || got[0].of.host != "load" || got[1].there != 101e6 || got[1].clients != 100e6 ||
		got[1].source != "interfaces of 2 server hosts" || !got[1].shared {
		t.Errorf("%+v", got)
	}
	if got := together(counts(50e6)[:2]); len(got) != 2 {
		t.Errorf("one host alone was changed: %+v", got)
	}
}

// TestInterfacesAreSummed checks that traffic over several interfaces of a host agrees only with
// their sum, and that a sum that is too small is still a fault.
func TestInterfacesAreSummed(t *testing.T) {
	carried := func(name string, there float64) count {
		return count{of: source{"interface", name, "a"}, source: name, shared: true, clients: 100e6, there: there, seconds: 10}
	}
	for _, c := range []struct {
		there []float64
		want  string
	}{
		{[]float64{50e6, 50e6}, OK},
		{[]float64{40e6, 39e6, 21e6}, OK},
		{[]float64{50e6, 100e6}, OK},
		{[]float64{50e6, 30e6}, Fail},
		{[]float64{50e6}, Fail},
		{[]float64{60e6, 60e6}, Warn},
		{[]float64{60e6, 40e6, 0, 30e6}, OK}, // the last is loopback, which others use
	} {
		var all []count
		for i, there := range c.there {
			if there > 0 {
				all = append(all, carried([]string{"eth0", "eth1", "eth2", hosts.Loopback}[i], there))
			}
		}
		got := onTheWay(all)
		if len(got) != 1+len(c.there)/4 {
			t.Fatalf("%v: %+v", c.there, got)
		}
		var k Check
		got[0].judge(&k)
		if k.Status != c.want {
			t.Errorf("%v: %+v", c.there, k)
		}
	}
}
