package rucio

import (
	"crypto/md5" // the paths of Rucio are defined by it
	"encoding/hex"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
)

// removal is the time that Rucio is expected to need for a copy besides its transfer: the cycles of
// the conveyor's daemons before and after it, and of the reaper that removes it.
const removal = 10 * time.Minute

// Pool returns the number of files at the source of a link that Rucio needs to keep the link at its
// target rate: a file cannot be copied to the same site again before its last copy is gone. size is
// the mean size of a file in bytes.
func Pool(c *challenge.Challenge, link int, size float64) int {
	l := &c.Links[link]
	share := 0.0
	for _, s := range c.Profile {
		share = max(share, float64(s.At))
	}
	held := removal + time.Duration(c.Files.Linger)
	files := float64(l.Rate) / 8 * share / max(size, 1) * held.Seconds()
	return int(math.Ceil(files)) + max(l.InFlight, 1)
}

// Path returns the path of a file below the prefix of a deterministic RSE with Rucio's default
// algorithm (hash). The files at sources must have these paths, with unique names.
func Path(scope, name string) string {
	sum := md5.Sum([]byte(scope + ":" + name))
	hash := hex.EncodeToString(sum[:2])
	if strings.HasPrefix(scope, "user") || strings.HasPrefix(scope, "group") {
		scope = strings.ReplaceAll(scope, ".", "/")
	}
	return path.Join(scope, hash[:2], hash[2:4], name)
}

// A place is a file at an RSE.
type place struct {
	name string // of the file in the scope of the challenge
	rse  string
}

// A pool keeps account of the places that copies have, so that a file has one copy at an RSE. A place
// is unchecked until Rucio was asked for a replica of an earlier challenge, free, held by a copy, or
// leaving until its replica is gone. It is a value without a clock or network; it is not safe for
// concurrent use.
type pool struct {
	slots map[place]*slot
}

type slotState int

const (
	unchecked slotState = iota
	free
	held
	leaving
)

type slot struct {
	state   slotState
	waiting []inject.Copy // for the place, the first first
}

func newPool() *pool { return &pool{map[place]*slot{}} }

func (p *pool) at(k place) *slot {
	s := p.slots[k]
	if s == nil {
		s = &slot{}
		p.slots[k] = s
	}
	return s
}

// take gives a place to a copy and returns true, or queues the copy.
func (p *pool) take(c inject.Copy, k place) bool {
	s := p.at(k)
	if s.state == free {
		s.state = held
		return true
	}
	s.waiting = append(s.waiting, c)
	return false
}

// adopt gives a place to the copy of an earlier process.
func (p *pool) adopt(k place) { p.at(k).state = held }

// release ends the hold of a copy whose rule was ended: the place becomes free when its replica is
// gone.
func (p *pool) release(k place) { p.at(k).state = leaving }

// dropAll removes the copies with the given ids that wait for places.
func (p *pool) dropAll(ids map[int64]bool) {
	for _, s := range p.slots {
		s.waiting = slices.DeleteFunc(s.waiting, func(c inject.Copy) bool { return ids[c.ID] })
	}
}

// asked returns the names of the files at each RSE for whose replicas Rucio is to be asked, in order.
func (p *pool) asked() map[string][]string {
	all := map[string][]string{}
	for k, s := range p.slots {
		if s.state == leaving || s.state == unchecked && len(s.waiting) > 0 {
			all[k.rse] = append(all[k.rse], k.name)
		}
	}
	for _, names := range all {
		slices.Sort(names)
	}
	return all
}

// gone frees a place without a replica. It returns the copy that now has the place, if one waited.
func (p *pool) gone(k place) (next inject.Copy, waited bool) {
	s := p.at(k)
	if s.state == held || s.state == free {
		return next, false
	}
	if len(s.waiting) == 0 {
		s.state = free
		return next, false
	}
	next, s.waiting, s.state = s.waiting[0], s.waiting[1:], held
	return next, true
}
