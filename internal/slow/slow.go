// Package slow judges why one transfer is slow, from measurements at one end.
//
// A caller fills a Seen with what it has measured and calls Judge. Each rule is a comparison of two
// measurements that differ in one thing: the same range again, more streams, a request without
// payload. Times are in seconds, rates in bytes per second, shares between 0 and 1.
package slow

import "weir/internal/cause"

// A Cause is what the time of a transfer goes to.
type Cause string

// The causes.
const (
	NameLookup  Cause = "name lookup"
	Connect     Cause = "connect"
	TLS         Cause = "tls"
	Login       Cause = "login"
	Redirector  Cause = "redirector"
	ServerDisk  Cause = "server disk"
	ServerHost  Cause = "server host"  // its CPU, threads or queue
	ServerLimit Cause = "server limit" // a rate that it gives to a stream or a client
	Line        Cause = "line"
	ThisHost    Cause = "this host"
	Program     Cause = "program" // the program at this end takes or gives data too slowly
	Checksum    Cause = "checksum"
	SmallFiles  Cause = "small files" // round trips for each file
	Unknown     Cause = ""
)

// A Detail is the more exact name of a cause.
type Detail string

// Details of Line.
const (
	Loss   Detail = "loss"
	Rate   Detail = "rate"
	Window Detail = "window"
	MTU    Detail = "mtu"
	Family Detail = "address family"
)

// Details of ThisHost and ServerHost (CPU, Queue) and of ServerLimit (Stream, Client).
const (
	CPU    Detail = "cpu"
	Disk   Detail = "disk"
	Queue  Detail = "queue"
	Stream Detail = "stream"
	Client Detail = "client"
)

// Setup is the time of a transfer before its payload in a new session, from one phase to the next.
type Setup struct {
	Lookup   float64 `json:"lookup_s"`
	Connect  float64 `json:"connect_s"`
	TLS      float64 `json:"tls_s"`
	Login    float64 `json:"login_s"`
	Redirect float64 `json:"redirect_s"`
	Open     float64 `json:"open_s"`
	First    float64 `json:"first_byte_s"`
}

// Phases returns the phases in their order.
func (s *Setup) Phases() [7]*float64 {
	return [...]*float64{&s.Lookup, &s.Connect, &s.TLS, &s.Login, &s.Redirect, &s.Open, &s.First}
}

// Sum returns the whole time.
func (s *Setup) Sum() (sum float64) {
	for _, phase := range s.Phases() {
		sum += *phase
	}
	return sum
}

// Parts returns the phases with their names.
func (s *Setup) Parts() []Part {
	names := [...]string{"name lookup", "connect", "TLS", "login", "redirector", "open", "first byte"}
	all := make([]Part, len(names))
	for i, phase := range s.Phases() {
		all[i] = Part{Name: names[i], Seconds: *phase}
	}
	return all
}

// Latency is the median time of small requests.
type Latency struct {
	Connect float64 `json:"connect_s"` // to the kernel of the other host; 0: not measured
	Request float64 `json:"request_s"` // without payload, in an open session; 0: not measured
}

// A Flow is payload that moved in one or several connections at the same time.
type Flow struct {
	Streams int     `json:"streams"`
	Bytes   float64 `json:"bytes"`
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"rate"`   // of all streams, without the first part of the time
	Spread  float64 `json:"spread"` // distance of the quartiles of the rate, relative to the median
	// Round is the correlation of the bytes of an eighth of a round trip with those one round trip later, 0 to 1: near 1, the
	// sender waits for its window.
	Round float64 `json:"round"`
	Wire  Wire    `json:"wire"`
}

// Wire is what the kernel measured of the connections of a flow. A write measures its own sending; a read sees only what arrives.
type Wire struct {
	Measured   bool    `json:"measured"`
	MinRTT     float64 `json:"min_rtt_s"`
	RTT        float64 `json:"rtt_s"`         // while payload moved
	Lost       float64 `json:"lost"`          // share of the segments that were sent again, or (reads) that arrived out of order
	Window     float64 `json:"window"`        // bytes that the receiver offers to take ahead
	Unread     float64 `json:"unread"`        // reads: share of the time in which much data waited for this program
	PeerWindow float64 `json:"peer_window"`   // writes: share of the time in which the other end took nothing
	OwnBuffer  float64 `json:"own_buffer"`    // writes: share of the time in which the send buffer was too small
	Idle       float64 `json:"idle"`          // writes: share of the time in which this program gave nothing to send
	Delivery   float64 `json:"delivery_rate"` // writes: estimate of what the line carries
}

// A Host is the state of this machine during a flow.
type Host struct {
	CPU       float64 `json:"cpu"`       // of all cores, by all programs
	Own       float64 `json:"own"`       // of one core, by this program
	Throttled float64 `json:"throttled"` // share of the time in which a limit of its group stopped this program
	Full      bool    `json:"full"`      // the local disk has no space left
}

// A Server is the state of the server's host during a flow, as its node_exporter reports it.
type Server struct {
	CPU  float64 `json:"cpu"`  // of all cores
	Core float64 `json:"core"` // of the busiest core
	Disk float64 `json:"disk"` // of the busiest disk
}

// Seen is what was measured of a transfer. What was not measured is zero.
type Seen struct {
	Write    bool      `json:"write"`
	Size     float64   `json:"size"` // bytes of the file
	Setup    Setup     `json:"setup"`
	Other    *Opening  `json:"other,omitempty"` // of a smaller file
	Idle     Latency   `json:"idle"`
	Busy     Latency   `json:"busy"`           // while payload moved
	Fresh    []Flow    `json:"fresh"`          // one stream, ranges that were not read before
	Again    []Flow    `json:"again"`          // the same ranges once more
	Many     []Flow    `json:"many"`           // several streams
	Kept     *Flow     `json:"kept,omitempty"` // one stream, kept on the local disk; the others drop their payload
	Host     Host      `json:"host"`
	Server   *Server   `json:"server,omitempty"`
	Stuck    *Stuck    `json:"stuck,omitempty"`
	Families []Address `json:"families,omitempty"`
	// Reference is the rate of a transfer with a service that is known to be good; 0: there is none
	Reference float64 `json:"reference,omitempty"`
}

// An Opening is the opening of a file.
type Opening struct {
	Size    float64 `json:"size"`
	Seconds float64 `json:"seconds"`
}

// Stuck is a service that accepts connections and gives no payload.
type Stuck struct {
	Requests bool `json:"requests"` // it does answer small requests
	Small    bool `json:"small"`    // a payload of one small packet arrives
}

// An Address is one way to reach the service.
type Address struct {
	IPv6    bool    `json:"ipv6"`
	Seconds float64 `json:"seconds"` // of a connect, or until it was given up
	Failed  string  `json:"failed,omitempty"`
}

// A Verdict names the cause.
type Verdict struct {
	Cause     Cause           `json:"cause"`
	Detail    Detail          `json:"detail,omitempty"`
	Certainty cause.Certainty `json:"certainty"`
	Share     float64         `json:"share"` // of the time of the transfer
	Text      string          `json:"text"`
	Advice    string          `json:"advice,omitempty"`
	Evidence  []string        `json:"evidence,omitempty"`
	Among     []Cause         `json:"among,omitempty"`    // of a cause that could not be told
	Excluded  []string        `json:"excluded,omitempty"` // what was ruled out, and by what
	Parts     []Part          `json:"parts,omitempty"`    // of the time of the whole file in one stream
}

// A Part is a part of the time of a transfer.
type Part struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Share   float64 `json:"share"`
}
