package scenario

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/unit"
	"weir/link"
)

const ms = unit.Duration(time.Millisecond)

func TestLinks(t *testing.T) {
	const head = "target: http://localhost/\nvariables: {RATE: 2Mbit/s}\n"
	for text, want := range map[string]Links{
		"link: {rate: \"${RATE}\", rtt: 51ms, loss: 0, queue: 200ms}": {{Spec: link.Spec{Rate: 2e6, RTT: 51 * ms, Queue: 200 * ms}}},
		"link: {cern: {rate: 1Gbit/s, share: 3}, home: {rate: 50Mbit/s, up: 10Mbit/s, congestion: cubic, outages: [{after: 30s, for: 10s}]}}": {
			{Name: "cern", Spec: link.Spec{Rate: 1e9, Share: 3}},
			{Name: "home", Spec: link.Spec{Rate: 5e7, Up: 1e7, Congestion: "cubic", Outages: []link.Outage{{After: 30000 * ms, For: 10000 * ms}}}},
		},
	} {
		if p := plan(t, head+text); !reflect.DeepEqual(p.Links, want) {
			t.Errorf("%s: %+v", text, p.Links)
		}
	}
	p := plan(t, head+"link: {cern: {rtt: 51ms}}", "link.cern.rtt=7ms", "link.home.rate=10Mbit/s", "variables=null")
	if want := (Links{{Name: "cern", Spec: link.Spec{RTT: 7 * ms}}, {Name: "home", Spec: link.Spec{Rate: 1e7}}}); !reflect.DeepEqual(p.Links,
		want) {
		t.Errorf("set: %+v", p.Links)
	}
}

// Every mistake is reported at its place, with the correct form.
func TestLinkMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"link: {}": "s.yaml:2:7: link: an empty map: describe the link, as in {rate: 100Mbit/s, rtt: " +
			"10ms}, or omit it",
		"link: 2Mbit/s":                     `s.yaml:2:7: link: "2Mbit/s": describe the link, as in {rate: 100Mbit/s, rtt: 10ms}, or omit it`,
		"link: {rtt: 51ms, rtts: 3}":        "s.yaml:2:19: unknown key link.rtts; did you mean rtt?",
		"link: {cern: {rat: 3}}":            "s.yaml:2:15: unknown key link.cern.rat; did you mean rate?",
		"link: {cern: {rate: 2Mbit}}":       `s.yaml:2:21: link.cern.rate: "2Mbit" has an unknown unit; did you mean 2Mbit/s?`,
		"link: {cern: {rate: [2Mbit/s]}}":   "s.yaml:2:21: link.cern.rate: a list; write one value",
		"link: {cern: {}}":                  "s.yaml:2:8: link.cern: an empty map; describe the link, as in {rate: 100Mbit/s, rtt: 10ms}",
		"link: {cern: {rtt: 1ms}, home: 3}": "s.yaml:2:32: link.home: \"3\"; write a map with keys such as rate, up, rtt",
		"link: {cern: {rtt: 1ms}, rate: 3Mbit/s}": "s.yaml:2:26: link.rate: keys of one link are mixed with names of several; " +
			"give each link a name, as in {cern: {rate: 1Gbit/s}, home: {rate: 50Mbit/s}}",
		"link: {rtt: 2ms, jitter: 2ms}":           "s.yaml:2:26: link.jitter: 2ms: the delay of one way, 1ms, cannot swing by more than itself",
		"link: {cern: {loss: 90%}}":               "s.yaml:2:21: link.cern.loss: 90%: use 0 to 50%",
		"link: {\"a b\": {loss: 9%}}":             `link: invalid link name "a b"`,
		"link: {outages: [{after: 1s, fro: 1s}]}": "s.yaml:2:30: unknown key link.outages.0.fro; did you mean for?",
		"link: {outages: [{after: 1s}]}":          "link.outages.0.for: 0s: use more than 0",
		"link: {share: many}":                     `s.yaml:2:15: link.share: "many"; write a number`,
		"link: {a: {rtt: 1ms, trunk: b}}": "s.yaml:2:29: link.a.trunk: there is no other link b; describe the shared line under " +
			"that name",
		"link: {a: {trunk: b}, b: {share: 2}}":     "s.yaml:2:34: link.b.share: a trunk has no clients",
		"link: {rate: 1Mbit/s}\ntarget: file:///x": "s.yaml:2:8: link: clients of file:// use no network",
	} {
		head := "target: http://localhost/\n"
		if strings.Contains(text, "target") {
			head = "\n"
		}
		_, err := Parse("s.yaml", []byte(head+text+"\n"), nil, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}

// A campaign varies keys of links, whole links, and the number of links.
func TestLinksInAMatrix(t *testing.T) {
	s := parse(t, `target: built-in
link: {rate: 1Gbit/s}
matrix:
  network:
    - {name: none, link: null}
    - {name: lan, link.rtt: 1ms}
    - {name: sites, link: {a: {rate: 1Mbit/s}, b: {rate: 2Mbit/s}}}
`)
	for i, want := range []int{0, 1, 2} {
		if got := s.Variants()[i].Scenario.Links; len(got) != want {
			t.Errorf("variant %d: %+v", i, got)
		}
	}
}

// The clients of links over a trunk are dealt out to the links, independent of the position of the
// trunk, and the plan lists the links that share the trunk.
func TestTrunk(t *testing.T) {
	p := plan(t, "target: built-in\nworkload: {kind: job, job: {events: 10}}\n"+
		"link: {line: {rate: 1Mbit/s, rtt: 10ms}, a: {rtt: 1ms, trunk: line, share: 2}, b: {rate: 2Mbit/s, trunk: line}}\nload: {clients: "+
		"[3, 9]}")
	for k, want := range [][]int{{2, 1}, {6, 3}} {
		if got := p.Dealt(p.Steps[k].Clients, k); !slices.Equal(got, want) {
			t.Errorf("step %d: %v, want %v", k, got, want)
		}
	}
	var b strings.Builder
	require.NoError(t, p.WriteText(&b))
	for _, want := range []string{"queue of 120 ms; a trunk, shared by a, b", "1 ms round trip, queue of 50 ms, over line",
		"over link a it takes",
		"over link b it takes"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the plan does not say %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "over link line it takes") {
		t.Errorf("no job is at the end of a trunk:\n%s", b.String())
	}
}
