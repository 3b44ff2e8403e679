package rucio

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weir/internal/unit"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
)

// A file is copied to an RSE when Rucio has no replica of it there, one copy at a time, in order.
func TestPool(t *testing.T) {
	p := newPool()
	k, other := place{"f", "Y"}, place{"f", "Z"}
	if p.take(inject.Copy{ID: 1}, k) {
		t.Error("an unchecked place was given away")
	}
	if got := p.asked(); len(got) != 1 || !slices.Equal(got["Y"], []string{"f"}) {
		t.Errorf("%v", got)
	}
	p.take(inject.Copy{ID: 2}, k)
	p.take(inject.Copy{ID: 3}, k)
	if next, ok := p.gone(k); !ok || next.ID != 1 {
		t.Errorf("%+v %v", next, ok)
	}
	if _, ok := p.gone(k); ok || len(p.asked()) > 0 {
		t.Error("a held place was freed")
	}
	p.release(k)
	p.dropAll(map[int64]bool{2: true})
	if next, ok := p.gone(k); !ok || next.ID != 3 {
		t.Errorf("%+v %v", next, ok)
	}
	p.release(k)
	if _, ok := p.gone(k); ok || !p.take(inject.Copy{ID: 4}, k) || p.take(inject.Copy{ID: 5}, other) {
		t.Error("a place without a replica is free; each RSE has its own place")
	}
	p.adopt(other)
	if _, ok := p.gone(other); ok {
		t.Error("the place of an adopted copy was freed")
	}
}

// Random orders of requests, deletions and cancellations never give a place to two copies, and no copy
// is lost or made twice.
func TestPoolRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	p, holder, exists := newPool(), map[place]int64{}, map[place]bool{}
	places := []place{{"a", "Y"}, {"b", "Y"}, {"a", "Z"}}
	of, ended := map[int64]place{}, map[int64]bool{}
	start := func(id int64, k place) {
		if holder[k] != 0 || exists[k] || ended[id] || of[id] != k {
			t.Fatalf("copy %d gets %v, which copy %d has", id, k, holder[k])
		}
		holder[k], exists[k] = id, true
	}
	for id := range int64(20_000) {
		k := places[random.IntN(len(places))]
		switch random.IntN(4) {
		case 0, 1:
			of[id+1] = k
			if p.take(inject.Copy{ID: id + 1}, k) {
				start(id+1, k)
			}
		case 2: // the copy ends, and its rule is deleted
			if holder[k] != 0 {
				ended[holder[k]] = true
				holder[k] = 0
				p.release(k)
			}
		case 3: // the reaper, and the question for replicas
			exists[k] = exists[k] && holder[k] != 0
			if slices.Contains(p.asked()[k.rse], k.name) && !exists[k] {
				if c, ok := p.gone(k); ok {
					start(c.ID, k)
				}
			}
		}
	}
	waiting := 0
	for _, s := range p.slots {
		waiting += len(s.waiting)
	}
	held := 0
	for _, id := range holder {
		if id != 0 {
			held++
		}
	}
	if len(of) != len(ended)+waiting+held || len(ended) < 1000 {
		t.Errorf("%d copies, %d ended, %d waiting, %d held", len(of), len(ended), waiting, held)
	}
}

// The pool's size is the target rate times the time that a file is in use, and the copies in flight.
func TestPoolSize(t *testing.T) {
	c := &challenge.Challenge{Links: []challenge.Link{{Rate: 80e6, InFlight: 20}},
		Files: challenge.Files{Linger: unit.Duration(5 * time.Minute)}, Profile: []challenge.Stage{{At: 0.5}, {At: 1}}}
	if got := Pool(c, 0, 10e6); got != 920 {
		t.Errorf("%d files", got)
	}
}

// The paths are those of rucio.rse.translation for the algorithm hash.
func TestPath(t *testing.T) {
	for _, c := range []struct{ scope, name, want string }{
		{"test", "f0", "test/fd/6d/f0"}, {"user.ada", "x", "user/ada/4e/87/x"},
	} {
		if got := Path(c.scope, c.name); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
