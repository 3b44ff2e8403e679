// Package diagnose takes a transfer apart: it names the cause of slow reading or writing of a file.
//
// Run carries out a ladder of probes, each of which separates two causes, within a budget of bytes,
// requests and time. Package internal/slow judges their measurements.
package diagnose

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"weir/internal/slow"
	"weir/internal/unit"
	"weir/storage"
)

// Options configure a diagnosis.
type Options struct {
	URL      *url.URL // a file; with Write, a folder
	Cred     storage.Credentials
	Driver   storage.Driver
	Write    bool          // write files into a new folder below URL instead of reading
	To       string        // folder of this machine in which the payload is kept as a transfer keeps it; "": dropped
	Refer    *url.URL      // a file of a service that is known to be fast; may be nil
	Exporter string        // URL of the node_exporter of the server's host; may be empty
	Bytes    int64         // budget of payload; 0: DefaultBytes
	Time     time.Duration // budget of time; 0: DefaultTime
	Version  string
	Probing  func(probe string) // called before each probe with its name; may be nil
}

// Defaults of Options.
const (
	DefaultBytes = 512 << 20
	DefaultTime  = 45 * time.Second
	requests     = 150 // most requests of a diagnosis that move no payload
)

// A Step is a probe of the ladder with its result.
type Step struct {
	Probe   string  `json:"probe"`
	Result  string  `json:"result"`
	Seconds float64 `json:"seconds"`
}

// Spent is the load of a diagnosis.
type Spent struct {
	Bytes    int64   `json:"bytes"`
	Requests int     `json:"requests"`
	Seconds  float64 `json:"seconds"`
}

// A Report is the result of a diagnosis.
type Report struct {
	Target  string       `json:"target"`
	From    string       `json:"from"` // name of this host
	At      time.Time    `json:"at"`   // UTC
	Version string       `json:"version"`
	Write   bool         `json:"write"`
	Verdict slow.Verdict `json:"verdict"`
	Steps   []Step       `json:"ladder"`
	Spent   Spent        `json:"spent"`
	Seen    slow.Seen    `json:"measured"`
}

// Budget describes the limits of a diagnosis in a sentence.
func (o *Options) Budget() string {
	verb := "reads"
	if o.Write {
		verb = "writes and removes"
	}
	return fmt.Sprintf("%s at most %s in %d s, with at most %d further requests", verb, unit.Bytes(float64(o.bytes())),
		int(o.time().Seconds()), requests)
}

func (o *Options) bytes() int64 {
	if o.Bytes == 0 {
		return DefaultBytes
	}
	return o.Bytes
}

func (o *Options) time() time.Duration {
	if o.Time == 0 {
		return DefaultTime
	}
	return o.Time
}

// Run makes a diagnosis. It returns an error if the target cannot be read or written at all. When
// ctx ends, it judges the measurements until then.
func Run(ctx context.Context, o Options) (*Report, error) {
	d := &diagnosis{Options: o, begun: time.Now()}
	if d.Probing == nil {
		d.Probing = func(string) {}
	}
	host, _ := os.Hostname() // optional
	d.seen.Write = o.Write
	d.report = Report{Target: o.URL.Redacted(), From: host, At: d.begun.UTC(), Version: o.Version, Write: o.Write}
	if err := d.Check(); err != nil {
		return nil, err
	}
	defer d.close()
	if err := d.open(ctx); err != nil {
		return nil, err
	}
	timed, cancel := context.WithTimeout(ctx, d.time())
	defer cancel()
	err := d.climb(timed)
	if d.owns {
		err = errors.Join(err, d.clean(context.WithoutCancel(ctx)))
	}
	if err != nil && d.seen.Stuck == nil && len(d.seen.Fresh) == 0 && !d.seen.Host.Full {
		return nil, err
	}
	r := &d.report
	r.Seen, r.Verdict = d.seen, slow.Judge(&d.seen)
	r.Spent.Seconds = time.Since(d.begun).Seconds()
	return r, nil
}

// A diagnosis is a diagnosis in progress.
type diagnosis struct {
	Options
	begun   time.Time
	report  Report
	seen    slow.Seen
	route   *route
	service storage.Service
	file    string   // path below the service's URL
	folder  string   // Write: the folder that the diagnosis makes
	owns    bool     // the folder exists and is not foreign
	made    []string // Write: files of the folder
	server  string   // host:port of the data server
	watch   *watch
	next    int64      // offset of the next range that was not read before
	last    storage.Op // that one stream carried out last
}

// base sets the paths of the file and of the folder to be made, and returns the URL of the folder above them.
func (d *diagnosis) base() url.URL {
	base := *d.URL
	if !d.Write {
		d.file = path.Base(base.Path)
		base.Path, base.RawPath = strings.TrimSuffix(base.Path, d.file), ""
	}
	base.Path = cmp.Or(base.Path, "/")
	d.folder = "weir-diagnose-" + rand.Text()[:12]
	return base
}

// Check returns an error if the options cannot be carried out.
func (o *Options) Check() error {
	if !o.Write && (strings.HasSuffix(o.URL.Path, "/") || o.URL.Path == "") {
		return fmt.Errorf("%s is a folder: name a file, or use --write", o.URL.Redacted())
	}
	return nil
}

// open opens the service of the folder of the file.
func (d *diagnosis) open(ctx context.Context) error {
	base := d.base()
	d.route = newRoute(d.URL)
	var err error
	if d.watch, err = newWatch(d.Exporter); err != nil {
		return err
	}
	if err := d.watch.unread; err != nil {
		d.report.Steps = append(d.report.Steps, Step{Probe: "sockets", Result: "they are not measured: " + err.Error()})
	}
	d.service, err = d.Driver.Open(ctx, storage.Target{URL: &base, Cred: d.Cred, Reach: d.route.reach})
	return err
}

func (d *diagnosis) close() {
	if d.watch != nil {
		d.watch.close()
	}
	if d.service != nil {
		_ = d.service.Close() // nothing is open any more
	}
}

// step carries out a probe and notes its result.
func (d *diagnosis) step(ctx context.Context, name string, probe func(context.Context) (string, error)) error {
	if ctx.Err() != nil {
		return nil
	}
	d.Probing(name)
	begun := time.Now()
	result, err := probe(ctx)
	if err != nil {
		result = err.Error()
	}
	s := Step{Probe: name, Result: result, Seconds: time.Since(begun).Seconds()}
	d.report.Steps = append(d.report.Steps, s)
	return err
}

// climb carries out the probes. The first results decide which other probes are needed.
func (d *diagnosis) climb(ctx context.Context) error {
	if err := d.step(ctx, "addresses", d.addresses); err != nil {
		return err
	}
	if err := d.step(ctx, "new sessions", d.sessions); err != nil {
		return err
	}
	if d.seen.Stuck != nil {
		return nil
	}
	if err := d.step(ctx, "requests without payload", d.idle); err != nil {
		return err
	}
	small := d.seen.Size > 0 && d.seen.Size < smallFile
	if err := d.step(ctx, "one stream", d.oneStream); err != nil || d.seen.Stuck != nil {
		return err
	}
	if !d.Write {
		if small || d.seen.Setup.Sum() > d.seen.Size/max(d.rate(), 1) {
			_ = d.step(ctx, "a smaller file", d.smaller) // optional
			return nil
		}
		_ = d.step(ctx, "the same range again", d.sameAgain)
		_ = d.step(ctx, "another range", d.oneStream)
		_ = d.step(ctx, "that range again", d.sameAgain)
	}
	counts := []int{2, 4, 8}
	if d.Write {
		counts = counts[:2]
	}
	for _, n := range counts {
		_ = d.step(ctx, fmt.Sprintf("%d streams", n), func(ctx context.Context) (string, error) { return d.streams(ctx, n) })
	}
	if d.To != "" && !d.Write {
		_ = d.step(ctx, "kept on the local disk", d.kept)
	}
	if d.Refer != nil {
		_ = d.step(ctx, "reference", d.reference)
	}
	return nil
}

// rate returns the rate of one stream.
func (d *diagnosis) rate() float64 { return rateOf(d.seen.Fresh) }

func (r *Report) rate() float64 { return rateOf(r.Seen.Fresh) }

func rateOf(flows []slow.Flow) (most float64) {
	for i := range flows {
		most = max(most, flows[i].Rate)
	}
	return most
}
