package metrics

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Page collects the values of one scrape. It is not safe for concurrent use.
type Page struct {
	table  [metrics]Metric
	escape *strings.Replacer           // of values of labels
	rows   [metrics]map[string]float64 // by labels, as they are written
	hist   [metrics]map[string]*histogram
}

// NewPage returns an empty page.
func NewPage() *Page {
	return &Page{table: table(), escape: strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)}
}

// Add adds to the value of a counter or gauge. labels are values in the order of the table; empty
// values are left out.
func (p *Page) Add(m ID, value float64, labels ...string) {
	if p.rows[m] == nil {
		p.rows[m] = map[string]float64{}
	}
	p.rows[m][p.labels(m, labels)] += value
}

// AddBool adds 1 if value is true, else 0.
func (p *Page) AddBool(m ID, value bool, labels ...string) {
	n := 0.0
	if value {
		n = 1
	}
	p.Add(m, n, labels...)
}

// labels writes values of labels: source="A",dest="B".
func (p *Page) labels(m ID, values []string) string {
	var list []string
	for i, name := range p.table[m].Labels {
		if values[i] != "" {
			list = append(list, name+`="`+p.escape.Replace(values[i])+`"`)
		}
	}
	return strings.Join(list, ",")
}

// Text returns the page in the text format of Prometheus, version 0.0.4. Metrics without values are left out.
func (p *Page) Text() string {
	var text strings.Builder
	for id, m := range p.table {
		if len(p.rows[id])+len(p.hist[id]) == 0 {
			continue
		}
		fmt.Fprintf(&text, "# HELP %s %s\n# TYPE %s %s\n", m.Name, m.Help, m.Name, m.Type)
		for _, labels := range sorted(p.rows[id]) {
			writeRow(&text, m.Name, labels, p.rows[id][labels])
		}
		for _, labels := range sorted(p.hist[id]) {
			p.hist[id][labels].write(&text, m.Name, labels)
		}
	}
	return text.String()
}

func sorted[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func writeRow(text *strings.Builder, name, labels string, value float64) {
	if labels != "" {
		labels = "{" + labels + "}"
	}
	text.WriteString(name + labels + " " + strconv.FormatFloat(value, 'g', -1, 64) + "\n")
}

// A histogram counts durations.
type histogram struct {
	counts []int64 // by bucket, not cumulative
	sum    float64
}

func (h *histogram) add(seconds float64) {
	all := bounds()
	if h.counts == nil {
		h.counts = make([]int64, len(all)+1)
	}
	i, _ := slices.BinarySearch(all, seconds) // the first bound that is not smaller
	h.counts[i]++
	h.sum += seconds
}

func (h *histogram) write(text *strings.Builder, name, labels string) {
	join := func(le string) string { return strings.TrimPrefix(labels+`,le="`+le+`"`, ",") }
	n := int64(0)
	for i, bound := range bounds() {
		n += h.counts[i]
		writeRow(text, name+"_bucket", join(strconv.FormatFloat(bound, 'g', -1, 64)), float64(n))
	}
	n += h.counts[len(h.counts)-1]
	writeRow(text, name+"_bucket", join("+Inf"), float64(n))
	writeRow(text, name+"_sum", labels, h.sum)
	writeRow(text, name+"_count", labels, float64(n))
}

// Names bounds the values of a label: the first names are kept, the other names become [Other].
type Names struct {
	max  int
	have map[string]bool
}

// NewNames returns a Names for at most so many names.
func NewNames(most int) *Names { return &Names{most, map[string]bool{}} }

// Of returns the value of the label for a name.
func (n *Names) Of(name string) string {
	switch {
	case n.have[name]:
	case len(n.have) >= n.max:
		return Other
	default:
		n.have[name] = true
	}
	return cmp.Or(name, Other)
}
