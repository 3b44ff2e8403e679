package workload

import (
	"fmt"
	"math/rand/v2"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/storage"
)

// A Job describes an analysis job, which goes through events of a file, one after the other, and
// computes on each event that it reads. It is the scenario's key workload.job, of kind job.
type Job struct {
	Access      string        `json:"access" default:"direct" enum:"direct,staged" doc:"Read events from the service, or from a copy of the file on a scratch disk."`
	Events      int           `json:"events" default:"3000" doc:"Events per job."`
	Event       unit.Size     `json:"event_size" default:"40KiB" doc:"Bytes per event."`
	Page        unit.Size     `json:"page" default:"8KiB" doc:"Bytes per request, without vector and read_ahead."`
	Skim        unit.Fraction `json:"skim" default:"100%" doc:"Share of the events to read, drawn at random."`
	Slim        unit.Fraction `json:"slim" default:"100%" doc:"Share of each of these events to read: whole pages, spread evenly."`
	Vector      int           `json:"vector,omitempty" doc:"Pages per request, wherever they are (vector reads)."`
	Ahead       unit.Size     `json:"read_ahead,omitempty" doc:"Bytes to request while the job computes on the previous ones; 0: off."`
	Compute     Span          `json:"compute" doc:"Computing time per event: fixed, uniform or exponential."`
	Burn        bool          `json:"burn,omitempty" doc:"Keep a core busy while computing; otherwise the job sleeps."`
	Scratch     string        `json:"scratch,omitempty" doc:"Folder for the copies of staged jobs. Default: that of the batch system."`
	Quota       unit.Size     `json:"scratch_quota,omitempty" doc:"Bytes of all copies of staged jobs on one machine; 0: as many as the disk has."`
	Copy        unit.Duration `json:"copy_timeout,omitempty" default:"1h" when:"access: staged" doc:"Time limit of the copy of a staged job."`
	OutputSize  unit.Size     `json:"output_size,omitempty" doc:"Bytes that a job writes to the target, in all of its output files; 0: no output."`
	OutputShare unit.Fraction `json:"output_share,omitempty" doc:"Output of a job as a share of the bytes that it reads, instead of output_size."`
	OutputFiles int           `json:"output_files,omitempty" doc:"Output files of a job, evenly over its events, the last at its end. Default: 1."`
}

// Ways in which jobs access their events.
const (
	Direct = "direct"
	Staged = "staged"
)

// pages returns the number of pages of an event, the last of which may be shorter.
func (j *Job) pages() int64 { return (int64(j.Event) + int64(j.Page) - 1) / int64(j.Page) }

// Reads returns the number of events that a job reads.
func (j *Job) Reads() int64 { return share(j.Skim, int64(j.Events)) }

// share returns a fraction of n, rounded, and at least one.
func share(f unit.Fraction, n int64) int64 { return min(max(int64(float64(f)*float64(n)+0.5), 1), n) }

// A Reading makes the requests of one job, one by one: a job of 3000 events has 15,000 requests. It
// belongs to one client.
type Reading struct {
	job    Job
	file   *File
	like   storage.Op // common fields of all requests
	verify float64    // share of the requests whose payload is checked
	sum    string     // algorithm of the check
	chunk  int        // of copies of the whole file, as in Work
	ahead  int
	each   int64 // pages read of an event
	from   int64 // offset of the first event in the file

	event  int64 // the event that is being read, from 0; job.Events at the end
	left   int64 // events still to be read after it
	page   int64 // the next page, among the pages of the event that are read
	ranges []storage.Range

	stream  *stream // of the client that does the job
	seen    int64   // events that were read
	used    int64   // bytes that were read
	wrote   int     // files of its output
	written int64   // bytes in these
}

// A Piece describes one request of a Reading, and the job's work on its data.
type Piece struct {
	Events  int64         // number of events that it completes
	Bytes   int64         // of the request
	Compute time.Duration // computing time of these events
}

// start begins another job on f.
func (g *Reading) start(r *rand.Rand, f *File, like storage.Op, anywhere bool) {
	g.file, g.like, g.from = f, like, 0
	g.each = share(g.job.Slim, g.job.pages())
	if room := f.Size/int64(g.job.Event) - int64(g.job.Events); anywhere && room > 0 {
		g.from = r.Int64N(room+1) * int64(g.job.Event)
	}
	g.seen, g.used, g.wrote, g.written = 0, 0, 0, 0
	g.event, g.page, g.left = -1, 0, share(g.job.Skim, int64(g.job.Events))
	g.skip(r)
}

// Job returns the job of the reading.
func (g *Reading) Job() *Job { return &g.job }

// Fits returns nil if the file may have all events that the job goes through. Otherwise its error
// contains the number of events in the file and wraps storage.ErrShort.
func (g *Reading) Fits() error {
	if g.job.fits(g.file.Size) {
		return nil
	}
	return fmt.Errorf("%.200q holds %s of %v, and a job goes through %d: %w", g.file.Path,
		say.Plural(int(g.file.Size/int64(g.job.Event)), "event"), g.job.Event, g.job.Events, storage.ErrShort)
}

// fits reports whether a file of that size may have all events of the job.
func (j *Job) fits(size int64) bool { return size < 0 || size >= j.Bytes() }

// Size returns the size of the file, negative if it is not known.
func (g *Reading) Size() int64 { return g.file.Size }

// Bytes returns the number of bytes of a file that the events of a job occupy.
func (j *Job) Bytes() int64 { return int64(j.Events) * int64(j.Event) }

// Whole fills op with the read of the whole file, for staged jobs. It has a Sum, unless
// verification is off. The caller names its Dest.
func (g *Reading) Whole(op *storage.Op) {
	*op = g.like
	op.Chunk, op.Ahead, op.Timeout = g.chunk, g.ahead, time.Duration(g.job.Copy)
	if g.verify > 0 {
		op.Sum = g.sum
	}
}

// Next fills op with the next request and returns the job's work on its data; more is false after
// the last request. Ops whose payload is to be verified have a Sum. The op's Ranges are valid until
// the next call. Offsets are positions in the file, and also in its copy. It allocates nothing.
func (g *Reading) Next(r *rand.Rand, op *storage.Op) (p Piece, more bool) {
	if g.event >= int64(g.job.Events) {
		return p, false
	}
	*op = g.like
	g.ranges = g.ranges[:0]
	for g.event < int64(g.job.Events) && g.fits(p.Bytes) {
		at, n := g.place()
		g.put(at, n)
		p.Bytes += n
		if g.step(r) {
			p.Events++
			p.Compute += g.job.Compute.Draw(r)
		}
	}
	g.seen, g.used = g.seen+p.Events, g.used+p.Bytes
	op.Ranges = g.ranges
	op.Keep = g.event < int64(g.job.Events) // the last request closes the file
	if drawn(r, g.verify) {
		op.Sum = g.sum
	}
	return p, true
}

// fits reports whether the next page fits into the request that has so many bytes.
func (g *Reading) fits(bytes int64) bool {
	if bytes == 0 {
		return true
	}
	at, n := g.place()
	last := g.ranges[len(g.ranges)-1]
	switch {
	case g.job.Vector > 1:
		return len(g.ranges) < g.job.Vector
	case g.job.Ahead > 0:
		return last.Offset+last.Length == at && bytes+n <= int64(g.job.Ahead)
	}
	return false
}

// put adds a page to the request.
func (g *Reading) put(at, n int64) {
	if len(g.ranges) > 0 && g.job.Vector <= 1 {
		g.ranges[0].Length += n
		return
	}
	g.ranges = append(g.ranges, storage.Range{Offset: at, Length: n})
}

// place returns the offset and the length of the next page. The pages that are read are spread
// evenly over an event, beginning with its first page.
func (g *Reading) place() (at, n int64) {
	in := (g.page*g.job.pages() + g.each - 1) / g.each * int64(g.job.Page)
	return g.from + g.event*int64(g.job.Event) + in, min(int64(g.job.Page), int64(g.job.Event)-in)
}

// step goes on to the next page that is read, and reports whether it belongs to another event.
func (g *Reading) step(r *rand.Rand) (another bool) {
	if g.page++; g.page < g.each {
		return false
	}
	g.page = 0
	g.skip(r)
	return true
}

// skip goes on to the next event that is read. The events are drawn so that all choices of the same
// number of events are equally likely (Knuth, The Art of Computer Programming, volume 2, 3.4.2,
// algorithm S).
func (g *Reading) skip(r *rand.Rand) {
	all := int64(g.job.Events)
	for g.event++; g.event < all && g.left > 0; g.event++ {
		if rest := all - g.event; g.left == rest || r.Int64N(rest) < g.left {
			g.left--
			return
		}
	}
	g.event = all
}

// Takes are the requests and the computing time of one job.
type Takes struct {
	Events   int64         // number of events that are read
	Requests int64         // approximate if pages of drawn events may share a request
	Bytes    int64         // of payload; half a page more or less for each event that is read in part
	Compute  time.Duration // mean, at most a century
}

// Takes returns the requests and the computing time of one job of j. It returns zero values without
// events, event size or page size, which Check refuses.
func (j *Job) Takes() Takes {
	if j.Events < 1 || j.Event < 1 || j.Page < 1 {
		return Takes{}
	}
	const century = 100 * 365 * 24 * time.Hour
	t := Takes{Events: share(j.Skim, int64(j.Events))}
	each := share(j.Slim, j.pages())
	t.Bytes = t.Events * min(each*int64(j.Page), int64(j.Event))
	t.Requests = t.Events * each
	at := int64(1) // pages of one request
	if j.Vector > 1 {
		at = int64(j.Vector)
	} else if j.Slim >= 1 {
		at = max(int64(float64(j.Ahead)/(float64(t.Bytes)/float64(t.Requests))), 1)
	}
	if j.Skim < 1 && j.Vector <= 1 {
		t.Requests = t.Events * ((each + at - 1) / at) // events lie apart
	} else {
		t.Requests = (t.Requests + at - 1) / at
	}
	t.Compute = time.Duration(min(float64(t.Events)*float64(j.Compute.Mean()), float64(century)))
	return t
}
