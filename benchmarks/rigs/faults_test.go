package rigs

import (
	"encoding/json"
	"math/rand/v2"
	"time"
)

// A spec describes the files and the faults of the fault server. Its zero value is a healthy server
// of 16 files of 64 KiB. Times count from the first GET of a file, so that the listing and the
// preparation of a run do not use up the schedule.
type spec struct {
	Address string `json:",omitempty"` // to listen at; default 127.0.0.1:0
	Files   int    `json:",omitempty"`
	Size    int    `json:",omitempty"` // bytes of each file

	HTTP10     bool `json:",omitempty"` // respond with HTTP/1.0 and close
	NoSizes    bool `json:",omitempty"` // no Content-Length of HEAD
	NoSums     bool `json:",omitempty"` // no checksums
	Chunked    bool `json:",omitempty"` // no Content-Length of GET
	Gzip       bool `json:",omitempty"` // content is compressed, whether or not the client accepts it
	WrongBytes bool `json:",omitempty"` // one byte of each body contradicts the checksum

	ShortBy int `json:",omitempty"` // bytes missing at the end of each body, though announced
	LongBy  int `json:",omitempty"` // bytes by which each file is longer than in HEAD
	CutBy   int `json:",omitempty"` // bytes by which each file is shorter than in HEAD, but not in GET

	Copies int `json:",omitempty"` // copies of a file that are written to disk at each GET

	Delay   duration `json:",omitempty"` // before each response, of all requests at once
	Lag     duration `json:",omitempty"` // added to the delay of every second connection
	Grow    duration `json:",omitempty"` // added by each GET to the delay of the next GET
	Ages    float64  `json:",omitempty"` // share by which the delay grows each second
	Lock    duration `json:",omitempty"` // before each response, of one request at a time
	Burn    duration `json:",omitempty"` // CPU time of each GET
	Threads int      `json:",omitempty"` // GOMAXPROCS; 0 is Go's default
	Slots   int      `json:",omitempty"` // GETs that are served at once; further GETs wait
	Held    duration `json:",omitempty"` // time for which a GET keeps its slot
	Cold    duration `json:",omitempty"` // added to the first GET of each file

	Every     int `json:",omitempty"` // one of this many GETs has status 500
	EverySum  int `json:",omitempty"` // one of this many requests for checksums has status 500
	EveryBusy int `json:",omitempty"` // one of this many GETs has status 503 and Retry-After
	Above     int `json:",omitempty"` // GETs at once above which the status is 503

	HangAt      int `json:",omitempty"` // number of the GET whose response is delayed by a minute
	EveryLosing int `json:",omitempty"` // one of this many PUTs is acknowledged, but its file is lost

	PerConn float64  `json:",omitempty"` // bytes per second of each connection
	Total   float64  `json:",omitempty"` // bytes per second of all connections together
	Burst   int      `json:",omitempty"` // bytes to which Total does not apply
	Half    duration `json:",omitempty"` // after this time Total halves
	Slow    duration `json:",omitempty"` // Total grows from a tenth to its value in this time
	Noise   float64  `json:",omitempty"` // share by which Total varies from one half second to the next
	Seed    uint64   `json:",omitempty"`

	Stalls   []window `json:",omitempty"` // windows in which no response begins
	Away     []window `json:",omitempty"` // windows without a listener; all connections are reset
	Mute     bool     `json:",omitempty"` // accept and never respond
	Redirect string   `json:",omitempty"` // URL of the node that has the files
}

// A window is a span of time since the first GET.
type window struct {
	From duration
	For  duration
}

// duration is written as in Go ("2.3s") in JSON.
type duration time.Duration

// MarshalJSON writes d as text.
func (d duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON parses the output of MarshalJSON.
func (d *duration) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	x, err := time.ParseDuration(text)
	*d = duration(x)
	return err
}

// ms returns a number of milliseconds as a duration.
func ms(n float64) duration { return duration(n * float64(time.Millisecond)) }

// span returns a window with a start and a length in seconds.
func span(from, lasts float64) window { return window{ms(1000 * from), ms(1000 * lasts)} }

// in returns the time that remains until the end of the windows that contain at, a time since the
// first GET, or 0 if no window contains it.
func in(windows []window, at time.Duration) (left time.Duration) {
	for _, w := range windows {
		if end := time.Duration(w.From + w.For); at >= time.Duration(w.From) && at < end {
			left = max(left, end-at)
		}
	}
	return left
}

// rate returns the total rate in bytes per second at a time since the first GET.
func (c *spec) rate(at time.Duration) float64 {
	r := c.Total
	if c.Half > 0 && at >= time.Duration(c.Half) {
		r /= 2
	}
	if slow := time.Duration(c.Slow); slow > 0 && at < slow {
		r *= 0.1 + 0.9*at.Seconds()/slow.Seconds()
	}
	if c.Noise > 0 {
		slot := uint64(at / (500 * time.Millisecond))
		r *= 1 + c.Noise*(2*rand.New(rand.NewPCG(c.Seed, slot)).Float64()-1)
	}
	return r
}
