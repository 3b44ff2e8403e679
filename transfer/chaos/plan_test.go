package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"weir/internal/content"
)

// A flaw is the defect of a copy of a file.
type flaw string

const (
	good    flaw = ""
	spoiled flaw = "spoiled" // a byte is wrong
	missing flaw = "missing"
	short   flaw = "short"
	long    flaw = "long"
)

// A file of the campaign. Its bytes follow from the seed.
type file struct {
	name     string
	seed     uint64
	size     int64
	adler    string
	nameless bool // the catalog has no checksum
	from     []string
	moved    bool            // the copies in from have another path
	flaws    map[string]flaw // of the copies in from, from the beginning
	later    map[string]flaw // flaws that copies get during the campaign
	foreign  bool            // another file has its name at the destination
	present  bool            // it is at the destination already, but not in the catalog
	giant    bool            // it does not fit
}

// A set is a dataset with a request for it.
type set struct {
	name  string
	to    string
	files []*file
	id    int64 // of the request
	twice bool  // it is requested a second time, with another key
	again int64 // that request
	grows bool  // its dataset grows after it was requested
}

// A plan is the initial state of a campaign: it follows from the seed.
type plan struct {
	size
	sets []*set
}

// sites are the sites of the campaign. D only dials out; C has a small disk.
var sites = []string{"A", "B", "C", "D"}

// goals are the destinations.
var goals = []string{"A", "W", "B", "X", "C", "H", "D", "K"}

func newPlan(s size) *plan {
	p := &plan{size: s}
	r := rand.New(rand.NewPCG(s.seed, 1))
	each := min(50, (s.files+len(goals)-1)/len(goals))
	for n := 0; n < s.files; n += each {
		k := len(p.sets)
		one := &set{name: fmt.Sprintf("/store/run%02d", k+1), to: goals[k%len(goals)], twice: k%5 == 1, grows: k%4 == 1}
		for i := range min(each, s.files-n) {
			f := newFile(r, s.seed, one, i)
			f.moved = k%3 == 2
			one.files = append(one.files, f)
		}
		p.sets = append(p.sets, one)
	}
	for i, one := range p.sets[:min(4, len(p.sets))] { // a few large files, whose interrupted transfers are resumed
		for range max(1, s.files/500) {
			one.files[(7*i)%len(one.files)].size = 16<<20 + int64(r.IntN(8<<20))
		}
	}
	for _, one := range p.sets {
		for _, f := range one.files {
			f.sum()
		}
	}
	return p
}

// giant adds a file that cannot fit at its destination.
func (p *plan) giant() {
	s := &set{name: "/store/giant", to: small}
	f := &file{name: s.name + "/f000", seed: content.Seed(p.seed, "giant"), size: smallDisk + 1<<20, from: []string{"A"}, giant: true}
	f.sum()
	s.files = append(s.files, f)
	p.sets = append([]*set{s}, p.sets...)
	p.files++
}

// sum computes the file's checksum.
func (f *file) sum() {
	sum, err := content.Sum("adler32", f.seed, 0, f.size)
	if err != nil {
		panic(err)
	}
	f.adler = sum[len("adler32:"):]
}

// newFile draws a file and its sites.
func newFile(r *rand.Rand, seed uint64, of *set, i int) *file {
	f := &file{name: fmt.Sprintf("%s/f%03d", of.name, i), flaws: map[string]flaw{}, later: map[string]flaw{}}
	f.seed = content.Seed(seed, f.name)
	switch k := r.IntN(100); {
	case k < 50:
		f.size = 1 + r.Int64N(16<<10)
	case k < 95:
		f.size = 16<<10 + r.Int64N(100<<10)
	case k < 99:
		f.size = 200<<10 + r.Int64N(800<<10)
	} // else it is empty
	blind := slices.Contains(unchecked, of.to)
	others := slices.DeleteFunc(slices.Concat(sites, foreign), func(s string) bool {
		return s == of.to || blind && (s == "R" || slices.Contains(unchecked, s)) // such two sites cannot copy from each other
	})
	r.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	n := 1
	if k := r.IntN(100); k > 85 {
		n = 3
	} else if k > 50 {
		n = 2
	}
	f.from = others[:n]
	kinds := []flaw{spoiled, missing, short, long}
	if f.size < 2 {
		kinds = []flaw{missing, long}
	}
	switch k := r.IntN(100); {
	case k < 16: // some copies have a flaw; with one copy, all copies have it
		bad := 1 + r.IntN(n)
		for _, site := range f.from[:bad] {
			f.flaws[site] = kinds[r.IntN(len(kinds))]
		}
	case k < 26:
		for _, site := range f.from[:1+r.IntN(n)] {
			f.later[site] = kinds[r.IntN(len(kinds))]
		}
	case k < 31:
		f.nameless = !blind && !slices.ContainsFunc(f.from, func(s string) bool { return slices.Contains(unchecked, s) })
	case k < 33:
		f.foreign = true
	case k < 36:
		f.present = !blind
	}
	return f
}

// sound reports whether there is a copy that never has a flaw.
func (f *file) sound() bool {
	return slices.ContainsFunc(f.from, func(s string) bool { return f.flaws[s] == good && f.later[s] == good })
}

// hopeless reports whether there never was a good copy.
func (f *file) hopeless() bool {
	return !slices.ContainsFunc(f.from, func(s string) bool { return f.flaws[s] == good })
}
