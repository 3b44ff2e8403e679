package challenge

import (
	"math"
	"time"

	"weir/internal/unit"
)

// Coarse is the largest file, as a share of the bytes of a minute, with which the rate of a link can
// be held within a few percent over a minute: 1/50.
const Coarse = 0.02

// Requests for a copy. Services are also asked for the state of copies: see pollInterval.
const (
	requestsOfCopy   = 1 // COPY, or the submission of a job or a rule
	requestsOfVerify = 1 // size and checksum of the copy
	requestsOfRemove = 1
)

// Requests to a transfer service: the injectors gather copies of a link for half a second before they
// submit them, and poll the states of all jobs each second, with up to 100 jobs in a request.
const (
	submissionsOfLink = 2.0 // per second, at most
	pollsPerSecond    = 1.0
	pollJobs          = 100
)

// An Estimate is the load that a challenge will make if nothing limits it.
type Estimate struct {
	Duration unit.Duration  `json:"duration"`
	Bytes    float64        `json:"bytes"`                 // of all copies
	Copies   float64        `json:"copies"`                // expected number
	Rate     float64        `json:"peak_bytes_per_second"` // of all links together
	Limited  bool           `json:"ceiling_limits"`        // the ceiling is below the sum of the targets
	Sources  float64        `json:"source_bytes"`          // made before the challenge, at all sites
	Requests Requests       `json:"peak_requests_per_second"`
	Links    []LinkEstimate `json:"links"`
	Sites    []SiteEstimate `json:"sites"`
}

// Requests are requests per second at the largest share.
type Requests struct {
	Copies  float64 `json:"copies"`          // requests for copies: to the sites, or to the service
	Polls   float64 `json:"polls,omitempty"` // requests for the state of copies, to the service: at least
	Verify  float64 `json:"verify"`          // requests for size and checksum, to the sites
	Removal float64 `json:"removal"`         // to the sites
}

// A LinkEstimate is the expected load of a link.
type LinkEstimate struct {
	Source   string       `json:"source"`
	Dest     string       `json:"destination"`
	Rate     unit.Bitrate `json:"target"`                  // at 100%
	BytesPer float64      `json:"target_bytes_per_second"` // the same in bytes
	Bytes    float64      `json:"bytes"`
	Copies   float64      `json:"copies"`
	Requests float64      `json:"requests"` // of weir: for copies, their verification and removal
	// Grain is the largest file as a share of the bytes of a minute at 100%: the mean over a minute
	// cannot be held closer than that. GrainLow is the same at the smallest share above 0.
	Grain    float64 `json:"file_share_of_minute"`
	GrainLow float64 `json:"file_share_of_minute_at_lowest"`
}

// A SiteEstimate is the expected load of a site.
type SiteEstimate struct {
	Name       string       `json:"name"`
	In         float64      `json:"in_bytes_per_second"` // peak
	Out        float64      `json:"out_bytes_per_second"`
	InLimit    unit.Bitrate `json:"in_limit,omitempty"` // as stated
	OutLimit   unit.Bitrate `json:"out_limit,omitempty"`
	BytesIn    float64      `json:"bytes_in"`
	BytesOut   float64      `json:"bytes_out"`
	CopiesIn   float64      `json:"copies_in"`
	CopiesOut  float64      `json:"copies_out"`
	Requests   float64      `json:"requests"`                 // of weir and of the other sites, in all
	RequestsPs float64      `json:"peak_requests_per_second"` // of weir and of the other sites
	Sources    float64      `json:"source_bytes"`             // of the files that are made
	// SpaceLeast is the space for the source files, the copies that linger, and one copy in flight of
	// each link; SpaceMost has as many copies in flight as the limits allow.
	SpaceLeast float64   `json:"space_least_bytes"`
	SpaceMost  float64   `json:"space_most_bytes"`
	Space      unit.Size `json:"space_limit,omitempty"` // as stated
}

// Estimate returns the expected load of the challenge. The expectation is that each link has its
// target; a ceiling reduces all links by the same share.
func (c *Challenge) Estimate() *Estimate {
	most := c.ceilingShare()
	peak := min(float64(c.mostShare()), most)
	at100 := c.shareSeconds(c.Duration(), most)
	mean := max(1, c.Files.Size.Mean())
	e := &Estimate{Duration: unit.Duration(c.Duration()), Limited: most < float64(c.mostShare()), Sites: c.siteEstimates()}
	window := c.windowSeconds(time.Duration(c.Files.Linger), most)
	index, perCopy := c.siteIndex(), c.requestsOfCopy()
	flight := make([]float64, len(c.Sites)) // copies to each site that may be in flight
	for i := range c.Links {
		l := &c.Links[i]
		rate := float64(l.Rate) / 8
		one := LinkEstimate{Source: l.From, Dest: l.To, Rate: l.Rate, BytesPer: rate, Bytes: rate * at100, Copies: rate * at100 / mean}
		one.Requests = one.Copies * perCopy
		one.Grain = float64(c.Files.Size.Most()) / (60 * rate)
		one.GrainLow = one.Grain / c.leastShare()
		e.Links = append(e.Links, one)
		e.Bytes, e.Copies, e.Rate = e.Bytes+one.Bytes, e.Copies+one.Copies, e.Rate+rate*peak
		from, to := &e.Sites[index[l.From]], &e.Sites[index[l.To]]
		from.Out, to.In = from.Out+rate*peak, to.In+rate*peak
		from.BytesOut, to.BytesIn = from.BytesOut+one.Bytes, to.BytesIn+one.Bytes
		from.CopiesOut, to.CopiesIn = from.CopiesOut+one.Copies, to.CopiesIn+one.Copies
		from.Sources = float64(c.Files.Sources) * mean
		to.SpaceLeast += rate*window + mean
		to.SpaceMost += rate * window
		flight[index[l.To]] += float64(l.InFlight)
	}
	c.addTotals(e, flight, peak)
	return e
}

// siteEstimates returns estimates with the facts of the sites.
func (c *Challenge) siteEstimates() []SiteEstimate {
	all := make([]SiteEstimate, len(c.Sites))
	for i := range c.Sites {
		s := &c.Sites[i]
		all[i] = SiteEstimate{Name: s.Name, InLimit: s.In, OutLimit: s.Out, Space: s.Space}
	}
	return all
}

// addTotals adds the space of the sites and the requests.
func (c *Challenge) addTotals(e *Estimate, flight []float64, peak float64) {
	mean, perCopy := max(1, c.Files.Size.Mean()), c.requestsOfCopy()
	share := 0.0 // of the copies, per second at the peak
	if seconds := c.shareSeconds(c.Duration(), c.ceilingShare()); seconds > 0 {
		share = peak / seconds
	}
	for i := range e.Sites {
		s := &e.Sites[i]
		e.Sources += s.Sources
		if limit := float64(c.Sites[i].InFlight); limit > 0 {
			flight[i] = min(flight[i], limit)
		}
		s.SpaceLeast += s.Sources
		s.SpaceMost += s.Sources + flight[i]*mean
		s.SpaceMost = max(s.SpaceMost, s.SpaceLeast)
		s.Requests = s.CopiesIn*perCopy + s.CopiesOut // the other site reads the file
		s.RequestsPs = s.Requests * share
	}
	copies := e.Copies * share
	e.Requests = Requests{Copies: copies, Verify: copies * c.verifies(), Removal: copies}
	if c.Inject.By != Direct {
		e.Requests.Polls = math.Ceil(float64(max(len(e.Links), 1))/pollJobs) * pollsPerSecond
	}
	if c.Inject.By == FTS {
		e.Requests.Copies = 0
		for i := range e.Links {
			e.Requests.Copies += min(e.Links[i].Copies*share, submissionsOfLink)
		}
	}
}

// requestsOfCopy returns the number of requests that weir sends for a copy.
func (c *Challenge) requestsOfCopy() float64 {
	return requestsOfCopy + requestsOfVerify*c.verifies() + requestsOfRemove
}

// verifies returns 1 if copies are verified, else 0.
func (c *Challenge) verifies() float64 {
	if c.Verify {
		return 1
	}
	return 0
}

// leastShare returns the smallest share of a stage above 0, 1 without stages.
func (c *Challenge) leastShare() float64 {
	least := math.Inf(1)
	for _, s := range c.Profile {
		if s.At > 0 {
			least = min(least, float64(s.At))
		}
	}
	if math.IsInf(least, 1) {
		return 1
	}
	return least
}
