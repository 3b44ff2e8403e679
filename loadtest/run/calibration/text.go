package calibration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"text/tabwriter"
	"unicode"

	"weir/internal/say"
	"weir/internal/unit"
)

// trailingBlanks matches blanks at the end of a line.
var trailingBlanks = regexp.MustCompile(` +\n`)

// WriteJSON writes the result in the form of calibration.json.
func (r *Result) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// WriteText writes the verdict, the tables and the notes for people, in lines
// of the given width where that is possible; 0 means 80 columns.
func (r *Result) WriteText(w io.Writer, width int) error {
	if width <= 0 {
		width = 80
	}
	width = min(max(width, 40), 100)
	out := &bytes.Buffer{}
	put := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) } // a buffer takes all
	for _, sentence := range r.Verdict {
		put("%s\n", strings.Join(say.Wrap(plain(sentence), width), "\n"))
	}
	if len(r.Points) > 0 {
		put("\n")
		r.figures(out)
	}
	r.wire(out)
	if len(r.Notes) > 0 {
		put("\n")
	}
	for _, n := range r.Notes {
		put("  note  %s\n", strings.Join(say.Wrap(plain(n), width-8), "\n        "))
	}
	_, err := w.Write(trailingBlanks.ReplaceAll(out.Bytes(), []byte("\n")))
	return err
}

// A row defines the display of a figure.
type row struct {
	name, label string
	show        func(float64) string
}

func rows() []row {
	return []row{
		{Throughput, "throughput", unit.Bits},
		{Rate, "files", func(x float64) string { return unit.Count(round(x)) + "/s" }},
		{Median, "transfer time, median", unit.Seconds},
		{Slowest, "transfer time, 99%", unit.Seconds},
		{ClientByFile, "client CPU a file", unit.Seconds},
		{ClientByGB, "client CPU a GB", unit.Seconds},
		{ServerByFile, "server CPU a file", unit.Seconds},
		{ServerByGB, "server CPU a GB", unit.Seconds},
		{WireByByte, "interface bytes a byte", func(x float64) string { return fmt.Sprintf("%.3f", x) }},
	}
}

func (r *Result) figures(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(cells ...string) { _, _ = fmt.Fprintln(t, strings.Join(cells, "\t")) } // its writer keeps the error
	for i := range r.Points {
		p := &r.Points[i]
		line(say.Plural(p.Clients, "client"), "weir", r.Program, "weir / "+r.Program)
		for _, x := range rows() {
			f := p.Figure(x.name)
			if f.Weir == nil && f.Real == nil || x.name == WireByByte && !r.interfaces(&f) {
				continue
			}
			line("  "+x.label, or(f.Weir, x.show), or(f.Real, x.show), f.Ratio.column())
		}
		if f := p.Figure(Rate); f.Paced == nil {
			continue
		}
		line("  weir at the pace of "+r.Program, "", "", "")
		for _, x := range rows() {
			if f := p.Figure(x.name); f.Paced != nil && (x.name == Rate || x.name == ServerByFile || x.name == ServerByGB) {
				line("    "+x.label, x.show(*f.Paced), x.show(*f.PacedReal), f.PacedRatio.column())
			}
		}
	}
	_ = t.Flush() // as above
}

// interfaces reports whether the counts of this machine's interfaces are worth a line: only the two
// sides have caused the bytes.
func (r *Result) interfaces(f *Figure) bool {
	return r.Relay == nil && r.Servers == nil && f.Ratio != nil && max(*f.Weir, *f.Real) < foreign
}

// foreign is the number of bytes on the wire for each byte of payload from which part of them must
// come from other programs.
const foreign = 1.5

func or(x *float64, show func(float64) string) string {
	if x == nil {
		return "-"
	}
	return show(*x)
}

func (r *Ratio) column() string {
	switch {
	case r == nil:
		return "-"
	case r.Low == r.High:
		return three(r.Value)
	}
	return fmt.Sprintf("%s (%s to %s)", three(r.Value), three(r.Low), three(r.High))
}

// wire writes the requests: the counts of a relay, and the counts of the servers.
func (r *Result) wire(w io.Writer) {
	for _, x := range []struct {
		wire  *Wire
		title string
	}{{r.Relay, "a file on the wire"}, {r.Servers, "a file, by the servers' count"}} {
		if x.wire == nil {
			continue
		}
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		line := func(cells ...string) { _, _ = fmt.Fprintln(t, strings.Join(cells, "\t")) }
		line("\n"+x.title, "weir", r.Program, "")
		for _, q := range x.wire.Requests {
			line("  "+plain(q.Name), number(q.Weir), number(q.Real), mark(q.Both))
		}
		line("  bytes to the server", unit.Bytes(x.wire.Sent.Weir), unit.Bytes(x.wire.Sent.Real), x.wire.mark(x.wire.Sent))
		line("  bytes to the client", unit.Bytes(x.wire.Received.Weir), unit.Bytes(x.wire.Received.Real), x.wire.mark(x.wire.Received))
		_ = t.Flush()
	}
}

func mark(b Both) string {
	if b.Differ() {
		return "differs"
	}
	return ""
}

// mark reports on a difference in bytes that matters beside all bytes.
func (w *Wire) mark(b Both) string {
	if math.Abs(b.Weir-b.Real) > max(0.01*(w.Sent.Real+w.Received.Real), 500) {
		return "differs"
	}
	return ""
}

// plain replaces control characters, which a terminal would obey, in text that comes from
// elsewhere.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, text)
}
