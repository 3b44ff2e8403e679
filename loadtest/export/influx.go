package export

import (
	"math"
	"strconv"
	"strings"
	"unicode"
)

// influx encodes points in InfluxDB's line protocol
// (https://docs.influxdata.com/influxdb/v1/write_protocols/line_protocol_reference/): the group of
// a metric is the measurement, labels are tags, the metric is a field. Fields of one group with
// equal tags and time share a line. All values are floats; times are in nanoseconds. A gauge
// without a value has no field.
type influx struct {
	most  int // bytes of a payload
	heads []string
	names [][]string // fields of each series
	said  []float64  // scratch

	head   string // of the line that is being written
	at     int64
	body   []byte
	values int
	first  int64
	ready  []payload
}

func newInflux(most int) *influx { return &influx{most: most} }

// point implements sink.
func (f *influx) point(p point) {
	if p.gone {
		return
	}
	for len(f.heads) <= p.number {
		f.heads, f.names = append(f.heads, ""), append(f.names, nil)
	}
	if f.names[p.number] == nil {
		f.heads[p.number], f.names[p.number] = lineHead(p.series), fields(p.series)
	}
	f.said = p.values(f.said[:0])
	for i, x := range f.said {
		f.field(f.heads[p.number], p.at, f.names[p.number][i], x)
	}
}

// field adds one value to the current line, or to a new line.
func (f *influx) field(head string, at int64, name string, x float64) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return // the protocol has no such values
	}
	if f.head == head && f.at == at {
		f.body = append(f.body, ',')
	} else {
		f.endLine()
		if len(f.body) >= f.most {
			f.pack()
		}
		f.head, f.at = head, at
		f.body = append(append(f.body, head...), ' ')
	}
	if f.values == 0 || at < f.first {
		f.first = at
	}
	f.body = append(append(f.body, name...), '=')
	f.body = strconv.AppendFloat(f.body, x, 'g', -1, 64)
	f.values++
}

func (f *influx) endLine() {
	if f.head == "" {
		return
	}
	f.body = append(f.body, ' ')
	f.body = strconv.AppendInt(f.body, f.at*1e6, 10)
	f.body = append(f.body, '\n')
	f.head = ""
}

func (f *influx) pack() {
	if f.values > 0 {
		f.ready = append(f.ready, payload{body: f.body, values: f.values, first: f.first})
		f.body, f.values = nil, 0
	}
}

// flush implements encoder.
func (f *influx) flush() []payload {
	f.endLine()
	f.pack()
	ready := f.ready
	f.ready = nil
	return ready
}

// fields returns the names of s's fields: a histogram has its buckets, whose names end with their
// bound, its count and its sum.
func fields(s *series) []string {
	name := s.metric.Field()
	if s.buckets == nil {
		return []string{name}
	}
	var all []string
	for _, b := range bounds() {
		all = append(all, name+"_le_"+boundText(b))
	}
	return append(all, name+"_le_inf", name+"_count", name+"_sum")
}

// lineHead returns the measurement and the tags of s, sorted by name.
func lineHead(s *series) string {
	var b strings.Builder
	b.WriteString(s.metric.Group)
	for _, l := range s.labels {
		if v := tagValue(l.Value); v != "" {
			b.WriteString("," + l.Name + "=" + v)
		}
	}
	return b.String()
}

// tagValue escapes commas, equal signs and spaces of a tag with a backslash. Lines cannot encode
// line breaks, nor a backslash before some other characters; they are replaced by a space and a
// slash.
func tagValue(v string) string {
	v = strings.Map(func(r rune) rune {
		switch {
		case r == '\\':
			return '/'
		case unicode.IsControl(r):
			return ' '
		}
		return r
	}, v)
	return strings.NewReplacer(",", `\,`, "=", `\=`, " ", `\ `).Replace(v)
}
