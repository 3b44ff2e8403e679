package link

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func texts(pairs ...string) []Entry {
	var out []Entry
	for p := range slices.Chunk(pairs, 2) {
		out = append(out, Entry{Key: p[0], Text: p[1]})
	}
	return out
}

func TestRead(t *testing.T) {
	one, err := Read(texts("rate", "2Mbit/s", "rtt", "51ms", "loss", "0", "queue", "200ms"))
	if want := []Named{{Spec: Spec{Rate: 2e6, RTT: 51 * ms, Queue: 200 * ms}}}; err != nil || !slices.Equal(one, want) {
		t.Errorf("%+v, %v", one, err)
	}
	several, err := Read([]Entry{
		{Key: "cern", Kind: Map, Map: texts("rate", "1Gbit/s", "share", "3")},
		{Key: "home", Kind: Map, Map: texts("rate", "50Mbit/s", "up", "10Mbit/s", "rtt", "25ms", "congestion", "cubic")},
	})
	want := []Named{{"cern", Spec{Rate: 1e9, Share: 3}}, {"home", Spec{Rate: 50e6, Up: 10e6, RTT: 25 * ms, Congestion: "cubic"}}}
	if err != nil || !slices.Equal(several, want) {
		t.Errorf("%+v, %v", several, err)
	}
	b, err := json.Marshal(several)
	var back []Named
	if err != nil || json.Unmarshal(b, &back) != nil || !reflect.DeepEqual(back, several) {
		t.Errorf("%s became %+v, %v", b, back, err)
	}
}

// All mistakes are told at once, each with its key.
func TestReadWrong(t *testing.T) {
	cern := func(entries ...Entry) []Entry { return []Entry{{Key: "cern", Kind: Map, Map: entries}} }
	for name, c := range map[string]struct {
		entries []Entry
		want    []string
	}{
		"nothing":  {nil, []string{"link: there is nothing in it"}},
		"unknown":  {texts("speed", "2Mbit/s", "rtt", "3"), []string{"link.speed: unknown key: use one of rate, up", `link.rtt: "3": a duration needs a unit`}},
		"both":     {append(cern(), texts("rate", "2Mbit/s")...), []string{"keys of one link and names of several"}},
		"no map":   {append(cern(texts("rate", "1Mbit/s")...), texts("home", "2Mbit/s")...), []string{"link.home: a link is a map of keys, as in home: {"}},
		"empty":    {cern(), []string{"link.cern: there is nothing in it"}},
		"a list":   {cern(Entry{Key: "rate", Kind: Other}, Entry{Key: "rtt", Kind: Map}), []string{"link.cern.rate: this is a single value, as in rate: 100Mbit/s", "link.cern.rtt: this is a single"}},
		"twice":    {cern(texts("mtu", "1500B", "mtu", "9000B")...), []string{"link.cern.mtu: the key is there twice"}},
		"checked":  {cern(texts("loss", "90%")...), []string{"link.cern.loss: 90%: use 0 to 50%"}},
		"bad name": {[]Entry{{Key: "a b", Kind: Map, Map: texts("rate", "1Mbit/s")}}, []string{`"a b" is no name for a link`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(c.entries)
			if err == nil {
				t.Fatal("nothing is wrong")
			}
			var key *KeyError
			if !errors.As(err, &key) {
				t.Errorf("%T", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nwithout %s", err, want)
				}
			}
		})
	}
}
