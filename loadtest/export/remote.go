package export

import (
	"math"
	"slices"
	"strings"

	"github.com/golang/snappy"
	"google.golang.org/protobuf/encoding/protowire"
)

// A payload is the body of one request.
type payload struct {
	body   []byte
	values int   // samples in it
	first  int64 // earliest time, in milliseconds since 1970
}

// An encoder is a sink that makes payloads.
type encoder interface {
	sink
	// flush returns everything added since the last flush, in order.
	flush() []payload
}

// remote makes requests of Prometheus remote write, version 1.0
// (https://prometheus.io/docs/specs/prw/remote_write_spec/): the protocol buffer message
// prometheus.WriteRequest, which is repeated TimeSeries (1), each repeated Label (1: name 1, value
// 2) and repeated Sample (2: double value 1, int64 timestamp 2), compressed as one block of snappy.
// Labels are sorted by name and not empty; samples of a series are in the order of their time.
type remote struct {
	most   int       // samples of a payload
	wires  [][]*wire // of each series: one wire per value
	used   []*wire
	values int
	first  int64
	ready  []payload
	said   []float64 // scratch
}

// A wire is a series in the format of remote write.
type wire struct {
	labels  []byte // encoded as in a TimeSeries
	samples []byte
}

func newRemote(most int) *remote { return &remote{most: most} }

// staleNaN marks the end of a series, or a gap in it.
func staleNaN() float64 { return math.Float64frombits(0x7ff0000000000002) }

// point implements sink.
func (r *remote) point(p point) {
	for len(r.wires) <= p.number {
		r.wires = append(r.wires, nil)
	}
	if r.wires[p.number] == nil {
		for _, part := range p.parts() {
			r.wires[p.number] = append(r.wires[p.number], newWire(part))
		}
	}
	if r.values == 0 || p.at < r.first {
		r.first = p.at
	}
	r.said = p.values(r.said[:0])
	for i, x := range r.said {
		if p.gone {
			x = staleNaN()
		}
		r.sample(r.wires[p.number][i], x, p.at)
	}
	if r.values >= r.most {
		r.pack()
	}
}

func (r *remote) sample(w *wire, x float64, at int64) {
	if len(w.samples) == 0 {
		r.used = append(r.used, w)
	}
	b := protowire.AppendTag(w.samples, 2, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(protowire.SizeTag(1)+8+protowire.SizeTag(2)+protowire.SizeVarint(uint64(at))))
	b = protowire.AppendTag(b, 1, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, math.Float64bits(x))
	b = protowire.AppendTag(b, 2, protowire.VarintType)
	w.samples = protowire.AppendVarint(b, uint64(at))
	r.values++
}

func newWire(p part) *wire {
	all := append([]Label{{"__name__", p.name}}, p.labels...)
	slices.SortFunc(all, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
	w := &wire{}
	for _, l := range all {
		pair := protowire.AppendTag(nil, 1, protowire.BytesType)
		pair = protowire.AppendString(pair, l.Name)
		pair = protowire.AppendTag(pair, 2, protowire.BytesType)
		pair = protowire.AppendString(pair, l.Value)
		w.labels = protowire.AppendTag(w.labels, 1, protowire.BytesType)
		w.labels = protowire.AppendBytes(w.labels, pair)
	}
	return w
}

// pack makes a payload of the samples.
func (r *remote) pack() {
	if r.values == 0 {
		return
	}
	var request []byte
	for _, w := range r.used {
		request = protowire.AppendTag(request, 1, protowire.BytesType)
		request = protowire.AppendVarint(request, uint64(len(w.labels)+len(w.samples)))
		request = append(append(request, w.labels...), w.samples...)
		w.samples = w.samples[:0]
	}
	r.ready = append(r.ready, payload{body: snappy.Encode(nil, request), values: r.values, first: r.first})
	r.used, r.values = r.used[:0], 0
}

// flush implements encoder.
func (r *remote) flush() []payload {
	r.pack()
	ready := r.ready
	r.ready = nil
	return ready
}
