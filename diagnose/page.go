package diagnose

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"weir/internal/say"
	"weir/internal/slow"
	"weir/internal/unit"
)

//go:embed page.html.tmpl
var page string

// A Bar is a rate in a bar chart.
type Bar struct {
	Name  string
	Rate  float64 // bytes per second
	Share float64 // of the highest rate
}

// Rates returns the rates by number of streams.
func (r *Report) Rates() (all []Bar) {
	most := 0.0
	add := func(name string, flows []slow.Flow) {
		for i := range flows {
			all = append(all, Bar{Name: name, Rate: flows[i].Rate})
			if name == "" {
				all[len(all)-1].Name = say.Plural(flows[i].Streams, "stream")
			}
			most = max(most, flows[i].Rate)
		}
	}
	add("1 stream", r.Seen.Fresh)
	add("the same range again", r.Seen.Again)
	add("", r.Seen.Many)
	for i := range all {
		all[i].Share = all[i].Rate / most
	}
	return all
}

// Page writes the report as a page without scripts, which can be mailed.
func (r *Report) Page(w io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"seconds": unit.Seconds, "percent": unit.Percent, "utc": say.UTC, "bits": unit.Bits,
		"bytes": func(n int64) string { return unit.Bytes(float64(n)) },
	}).Parse(page)
	if err != nil {
		return fmt.Errorf("page of the diagnosis: %w", err)
	}
	return t.Execute(w, r)
}
