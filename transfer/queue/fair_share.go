package queue

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// A contender is a request with files that could go to a destination now.
type contender struct {
	id       int64
	share    string
	priority int
	ready    int64 // files
}

// A fairShare determines the order of files at one destination. Shares get files in proportion to
// their weights; within a share higher priorities go first, but each hundred files of a higher
// priority that overtake a request raise its priority by one, so that no request waits forever;
// requests of the same priority take turns, so that a single file does not wait behind another
// user's million. It is start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996) with files
// and their bytes as the service: each share and each request has a virtual time that grows with
// its service; the least time comes first, and a share or request that comes back gets no credit for
// the time without files. The state is kept in memory: a coordinator that starts again begins with
// equal times.
type fairShare struct {
	weights  map[string]float64
	shares   map[string]float64
	requests map[int64]float64
	all      map[int64]contender // as of the last admit
	passed   map[int64]int       // files of its share, of higher priority, that were begun since its own last file
}

// raised is the number of files that overtake a request until its priority is one higher.
const raised = 100

func newFairShare(weights map[string]float64) *fairShare {
	return &fairShare{weights: weights, shares: map[string]float64{}, requests: map[int64]float64{}, all: map[int64]contender{},
		passed: map[int64]int{}}
}

// copied returns a copy that next can change.
func (t *fairShare) copied() *fairShare {
	return &fairShare{weights: t.weights, shares: maps.Clone(t.shares), requests: maps.Clone(t.requests), all: maps.Clone(t.all),
		passed: maps.Clone(t.passed)}
}

// admit gives new and returning contenders the least time of the present contenders, and removes
// the contenders that are gone.
func (t *fairShare) admit(all []contender) {
	shares, requests := map[string]bool{}, map[int64]bool{}
	for _, c := range all {
		shares[c.share], requests[c.id] = true, true
		t.all[c.id] = c
	}
	gone := func(id int64) bool { return !requests[id] }
	maps.DeleteFunc(t.all, func(id int64, _ contender) bool { return gone(id) })
	maps.DeleteFunc(t.passed, func(id int64, _ int) bool { return gone(id) })
	enter(t.shares, shares)
	enter(t.requests, requests)
}

func enter[K comparable](times map[K]float64, there map[K]bool) {
	least := math.Inf(1)
	for k, v := range times {
		if !there[k] {
			delete(times, k)
			continue
		}
		least = min(least, v)
	}
	if math.IsInf(least, 1) {
		least = 0
	}
	for k := range there {
		if _, ok := times[k]; !ok {
			times[k] = least
		}
	}
}

// pay charges a file of size bytes to its share and request: the fixed cost of a file equals that
// of 64 MiB.
func (t *fairShare) pay(share string, request, size int64) {
	cost := 1 + float64(size)/(64<<20)
	if _, there := t.requests[request]; there {
		t.requests[request] += cost
	}
	for id, c := range t.all {
		if c.share == share && c.priority < t.all[request].priority {
			t.passed[id]++
		}
	}
	t.passed[request] = 0
	if _, there := t.shares[share]; there {
		t.shares[share] += cost / t.weight(share)
	}
}

// A turn is a contender with the state that next changes.
type turn struct {
	contender
	shareTime    *float64
	time, weight float64
	passed       int
}

// next returns the requests whose turn it is, one request for each of at most n files, if all files
// have the same size. It changes nothing. Each file costs a pass over all contenders, so that the
// compared values are not in maps.
func (t *fairShare) next(all []contender, n int) []int64 {
	try := t.copied()
	try.admit(all)
	shares := map[string]*float64{}
	left := make([]turn, len(all))
	for i, c := range all {
		if shares[c.share] == nil {
			time := try.shares[c.share]
			shares[c.share] = &time
		}
		left[i] = turn{c, shares[c.share], try.requests[c.id], t.weight(c.share), try.passed[c.id]}
	}
	var order []int64
	for len(order) < n && len(left) > 0 {
		best := 0
		for i := range left {
			if left[i].before(&left[best]) {
				best = i
			}
		}
		c := &left[best]
		order = append(order, c.id)
		for i := range left {
			if left[i].priority < c.priority && left[i].share == c.share {
				left[i].passed++
			}
		}
		c.time++
		c.passed = 0
		*c.shareTime += 1 / c.weight
		if c.ready--; c.ready <= 0 {
			left = slices.Delete(left, best, best+1)
		}
	}
	return order
}

// weight returns the weight of a share, 1 by default.
func (t *fairShare) weight(share string) float64 {
	if w := t.weights[share]; w > 0 {
		return w
	}
	return 1
}

// before reports whether it is the turn of t before that of o. The priority of a request is raised
// while others overtake it.
func (t *turn) before(o *turn) bool {
	switch {
	case t.shareTime != o.shareTime:
		return cmp.Or(cmp.Compare(*t.shareTime, *o.shareTime), cmp.Compare(t.share, o.share)) < 0
	case t.priority+t.passed/raised != o.priority+o.passed/raised:
		return t.priority+t.passed/raised > o.priority+o.passed/raised
	case t.time != o.time:
		return t.time < o.time
	}
	return t.id < o.id
}
