package link

import (
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/unit"
)

const ms = unit.Duration(time.Millisecond)

func TestParse(t *testing.T) {
	s, err := Parse("rate=2Mbit/s, rtt=51ms loss=0.1%,queue=200ms, congestion=cubic")
	want := Spec{Rate: 2e6, RTT: 51 * ms, Loss: 0.001, Queue: 200 * ms, Congestion: "cubic"}
	if err != nil || s != want {
		t.Errorf("%+v, %v", s, err)
	}
	if got := s.String(); got != "2.00 Mbit/s, 51 ms round trip, 0.1% loss, queue of 200 ms, cubic" {
		t.Error(got)
	}
}

// What is wrong is told with what would be right.
func TestWrong(t *testing.T) {
	for text, want := range map[string]string{
		"rate=2Mbit":                         `did you mean 2Mbit/s?`,
		"rate=2":                             "needs a unit",
		"speed=2Mbit/s":                      `unknown key "speed": use one of rate, up, rtt`,
		"2Mbit/s":                            "write key=value, as in rate=2Mbit/s, rtt=51ms",
		"rtt=51":                             "needs a unit, as in",
		"rtt=51ms rtt=52ms":                  "rtt is there twice",
		"rate=1bit/s":                        "link.rate: 1bit/s: use 10kbit/s to 100Gbit/s",
		"rtt=1m":                             "link.rtt: 1m: use 0 to 10s",
		"rtt=10ms jitter=6ms":                "link.jitter: 6ms: the delay of one way, 5ms, cannot swing by more than itself: use at most 5ms",
		"loss=60%":                           "link.loss: 60%: use 0 to 50%",
		"mtu=100B":                           "link.mtu: 100B: use 576B to 9000B",
		"congestion=Cubic!":                  "such as cubic, reno or bbr",
		"share=-1":                           "link.share: -1: use a number above 0",
		"share=many":                         `share: "many" is not a number`,
		"share=NaN":                          "use a number above 0",
		"rate=100Gbit/s queue=10s":           "would hold 125 GB in one direction",
		"rate=" + strings.Repeat("9", 10000): "needs a unit",
		"rate=" + strings.Repeat("9", 10000) + "Mbit/s": "too large",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", text, err, want)
		} else if len(err.Error()) > 300 {
			t.Errorf("%.60s: a message of %d bytes", text, len(err.Error()))
		}
	}
}

func TestCheckNames(t *testing.T) {
	err := Check([]Named{{Name: "cern", Spec: Spec{Loss: 2}}, {Name: "cern"}, {Name: ""}, {Name: "../x"}})
	var key *KeyError
	if !errors.As(err, &key) || key.Key != "cern.loss" {
		t.Errorf("%+v", key)
	}
	for _, want := range []string{"link.cern.loss: 200%", "two links named cern", `"" is no name`, `"../x" is no name`} {
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

// Dealing follows the shares, and adding a client takes none away.
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

func FuzzParse(f *testing.F) {
	f.Add("rate=2Mbit/s, rtt=51ms")
	f.Add("loss=1% queue=0 mtu=9kB share=1e400")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		if err := Check([]Named{{Spec: s.Complete()}}); err != nil {
			t.Errorf("%q is right, completed it is not: %v", text, err)
		}
		_ = s.String()
	})
}

// The reference names each key.
func TestReference(t *testing.T) {
	b, err := os.ReadFile("../docs/links.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range Keys() {
		if !strings.Contains(string(b), "\n| `"+key+"` |") {
			t.Errorf("docs/links.md has no line for %s", key)
		}
		if err := new(Spec).Set(key, ""); err == nil && key != "congestion" {
			t.Errorf("%s may be empty", key)
		}
	}
}
