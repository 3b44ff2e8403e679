package link

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/unit"
)

const ms = unit.Duration(time.Millisecond)

func TestString(t *testing.T) {
	s := Spec{Rate: 2e6, RTT: 51 * ms, Loss: 0.001, Queue: 200 * ms, Congestion: "cubic",
		Outages: []Outage{{After: 30000 * ms, For: 10000 * ms}}}
	if got := s.String(); got != "2.00 Mbit/s, 51 ms round trip, 0.1% loss, queue of 200 ms, cubic, down for 10 s after 30 s" {
		t.Error(got)
	}
}

// An error names the wrong value and describes a valid value.
func TestWrong(t *testing.T) {
	const s = 1000 * ms
	for want, spec := range map[string]Spec{
		"link.rate: 1bit/s: use 10kbit/s to 100Gbit/s": {Rate: 1},
		"link.rtt: 1m: use 0 to 10s":                   {RTT: 60 * s},
		"link.jitter: 6ms: the delay of one way, 5ms, cannot swing by more than itself: use at most 5ms": {RTT: 10 * ms, Jitter: 6 * ms},
		"link.loss: 60%: use 0 to 50%":                           {Loss: 0.6},
		"link.mtu: 100B: use 576B to 9000B":                      {MTU: 100},
		"link.burst: 1000B: use at least one packet, as in 1MB":  {Rate: 8e6, Burst: 1000},
		"link.burst: 1000000B: use at least one packet, as in 1": {Burst: 1e6},
		"link.black_hole: 60B: use 100B to 9000B":                {BlackHole: 60},
		"such as cubic, reno or bbr":                             {Congestion: "Cubic!"},
		"link.share: -1: use a number above 0":                   {Share: -1},
		"link.share: NaN: use a number above 0":                  {Share: math.NaN()},
		"would hold 125 GB in one direction":                     {Rate: 1e11, Queue: 10 * s},
		"link.outages.0.for: 0s: use more than 0":                {Outages: []Outage{{After: s}}},
		"link.outages.1.after: 5s: the link is still down then, from 1s for 10s: " +
			"write outages in their order": {Outages: []Outage{{s, 10 * s}, {5 * s, s}}},
		"link.outages.0.after: -1s: use 0 to 366d, counted from when the load begins": {Outages: []Outage{{-s, s}}},
	} {
		if err := Check([]Named{{Spec: spec}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", spec, err, want)
		}
	}
}

func TestCheckNames(t *testing.T) {
	err := Check([]Named{{Name: "cern", Spec: Spec{Loss: 2}}, {Name: "cern"}, {Name: ""}, {Name: "../x"}, {Name: "rate"}})
	var key *KeyError
	if !errors.As(err, &key) || key.Key != "cern.loss" {
		t.Errorf("%+v", key)
	}
	for _, want := range []string{"rate is a key of a link", "link.cern.loss: 200%", "two links named cern", `invalid link name ""`,
		`invalid link name "../x"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwithout %s", err, want)
		}
	}
	if err := Check([]Named{{}}); err != nil {
		t.Errorf("the only link needs no name: %v", err)
	}
}

func TestComplete(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want unit.Duration
	}{
		{Spec{}, 50 * ms}, {Spec{RTT: 90 * ms}, 90 * ms}, {Spec{Rate: 2e6}, 60 * ms}, {Spec{Rate: 1e9, Up: 1e6}, 120 * ms}, {Spec{Queue: ms}, ms},
	} {
		if got := c.spec.Complete(); got.Queue != c.want || got.MTU != 1500 || got.Share != 1 {
			t.Errorf("%+v: %+v", c.spec, got)
		}
	}
}

// A trunk is named by other links, and has no clients.
func TestTrunks(t *testing.T) {
	links := []Named{{Name: "a", Spec: Spec{Rate: 2e6, RTT: 7 * ms, Burst: 1e5, BlackHole: 1400, Trunk: "line"}},
		{Name: "line", Spec: Spec{Rate: 6e6, Up: 1e6, RTT: ms, Burst: 1e6, BlackHole: 1450}},
		{Name: "b", Spec: Spec{Rate: 8e6, Trunk: "line", MTU: 576}}, {Name: "c"}}
	require.NoError(t, Check(links))
	names := func(all []Named) (out []string) {
		for _, l := range all {
			out = append(out, l.Name)
		}
		return out
	}
	if s, l := names(Sites(links)), names(Trunks(links)); !slices.Equal(s, []string{"a", "b", "c"}) || !slices.Equal(l, []string{"line"}) ||
		!slices.Equal(Over(links, "line"), []string{"a", "b"}) || Over(links, "a") != nil || Over(links, "") != nil {
		t.Errorf("sites %v, trunks %v", s, l)
	}
	a, b, c := Path(links, links[0]), Path(links, links[2]), Path(links, links[3])
	if a.Rate != 2e6 || a.Up != 1e6 || a.RTT != 8*ms || b.Rate != 6e6 || b.Up != 1e6 || b.MTU != 576 || c.Rate != 0 || c.Up != 0 ||
		c.MTU != 1500 || a.Burst != 1e5 || b.Burst != 1e6 || a.BlackHole != 1400 || b.BlackHole != 1450 {
		t.Errorf("paths %+v, %+v, %+v", a, b, c)
	}
}

// Each impossible trunk is refused with a description of a valid value.
func TestTrunkMistakes(t *testing.T) {
	over := func(trunk string) Spec { return Spec{Trunk: trunk} }
	for want, links := range map[string][]Named{
		"link.a.trunk: there is no other link line":           {{Name: "a", Spec: over("line")}, {Name: "b"}},
		"link.trunk: there is no other link x":                {{Spec: over("x")}},
		"link.a.trunk: there is no other link a":              {{Name: "a", Spec: over("a")}},
		"link.a.trunk: b leads over a trunk itself, c":        {{Name: "a", Spec: over("b")}, {Name: "b", Spec: over("c")}, {Name: "c"}},
		"link.a.trunk: b leads over a trunk itself, a":        {{Name: "a", Spec: over("b")}, {Name: "b", Spec: over("a")}},
		"link.b.share: a trunk has no clients":                {{Name: "a", Spec: over("b")}, {Name: "b", Spec: Spec{Share: 2}}},
		"link.b.congestion: a trunk has no TCP of its own":    {{Name: "a", Spec: over("b")}, {Name: "b", Spec: Spec{Congestion: "reno"}}},
		"link.a.trunk: a leads over a trunk itself, a; a tru": {{Name: "a", Spec: over("a")}, {Name: "b"}},
	} {
		if err := Check(links); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v\nwant %s", links, err, want)
		}
	}
}

// Dealing follows the shares, and adding a client removes no other client from a link.
func TestDeal(t *testing.T) {
	links := []Named{{Name: "a", Spec: Spec{Share: 3}}, {Name: "b"}, {Name: "c", Spec: Spec{Share: 0.5}}}
	before := make([]int, 3)
	for n := range 500 {
		got := Deal(n, links)
		sum := 0
		for i := range got {
			sum += got[i]
			if exact := float64(n) * []float64{3, 1, 0.5}[i] / 4.5; got[i] < before[i] || math.Abs(float64(got[i])-exact) > 1 {
				t.Fatalf("%d clients: %v, before %v", n, got, before)
			}
		}
		if sum != n {
			t.Fatalf("%d clients: %v", n, got)
		}
		before = got
	}
	if got := Deal(4, make([]Named, 4)); !slices.Equal(got, []int{1, 1, 1, 1}) {
		t.Error(got)
	}
}

// The reference names each key.
func TestReference(t *testing.T) {
	b := require.File(t, "../docs/links.md")
	for _, key := range Keys() {
		if !strings.Contains(string(b), "\n| `"+key+"` |") {
			t.Errorf("docs/links.md has no line for %s", key)
		}
	}
}
