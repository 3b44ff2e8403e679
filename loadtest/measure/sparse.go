package measure

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/bits"

	"github.com/HdrHistogram/hdrhistogram-go"

	"weir/internal/adler"
	"weir/internal/scan"
)

// A bucket is a counter of a histogram and its count.
type bucket struct {
	index int
	count int64
}

// The geometry of histograms from lowest to highest with two digits, as
// HdrHistogram makes it: the counters of the first bucket are 2^unit apart, and
// each further bucket adds half as many, twice as far apart.
const (
	unit = 6 // floor(log2(lowest))
	half = 7 // log2 of half the counters of a bucket: 2*10^digits, rounded up to a power of two
	// counters is the number of counters: buckets 0 to n until 2^(unit+half+1+n) is above highest,
	// plus one, times 2^half.
	counters = 30 << half
)

// indexOf returns the counter of a value from 0 to highest.
func indexOf(value int64) int {
	b := max(0, bits.Len64(uint64(value))-unit-half-1)
	return b<<half + int(value>>(unit+b))
}

// valueOf returns the smallest value that a counter takes.
func valueOf(index int) int64 {
	b, sub := index>>half-1, index&(1<<half-1)+1<<half
	if b < 0 {
		return int64(index) << unit
	}
	return int64(sub) << (b + unit)
}

// top returns the largest value that a counter takes.
func top(index int) int64 { return valueOf(index) + 1<<(unit+max(0, index>>half-1)) - 1 }

// A HistogramReader reads many histograms with the memory for one. The zero
// value is ready. It is not safe for concurrent use.
type HistogramReader struct {
	line   scan.Line
	packed []byte
	source bytes.Reader
	unzip  io.ReadCloser // of source; nil before the first histogram
	plain  []byte
}

// Read does the same as h.UnmarshalJSON(b), in the memory that h has: copies of h that were made
// before must not be used any more. It returns false if b is not in the form that MarshalJSON
// writes; then UnmarshalJSON reads b or returns the error, and h has no valid content. Counters
// that are not zero are listed; no array of all of them is made.
func (d *HistogramReader) Read(h *Histogram, b []byte) bool {
	if string(b) == `{"count":0}` {
		*h = Histogram{sparse: h.sparse[:0]}
		return true
	}
	sum, ok := d.read(b)
	if !ok {
		return false
	}
	list, total, ok := unpacked(h.sparse[:0], d.plain)
	*h = Histogram{sparse: list, total: total, sum: sum}
	return ok
}

// read unpacks the counts of a histogram into d.plain and returns its sum.
func (d *HistogramReader) read(b []byte) (sum int64, ok bool) {
	l := &d.line
	l.Reset(b)
	l.Open()
	if l.Key("count") {
		l.Int()
	}
	if l.Key("sum") {
		sum = nanoseconds(l.Float())
	}
	if l.Key("min") {
		l.Skip()
	}
	if l.Key("max") {
		l.Skip()
	}
	var text []byte
	if l.Key("hdr") {
		text = l.Bytes()
	}
	l.Close()
	if !l.Whole() || len(text) == 0 {
		return 0, false
	}
	return sum, d.unpack(text)
}

// packedHead is the length of the head that precedes zlib's format (RFC 1950) in HdrHistogram's: a
// mark and the length, of 4 bytes each.
const packedHead = 8

// The head and the sizes around a histogram that fits into one stored block of DEFLATE (RFC 1951),
// within zlib's format.
const (
	zlibHead = "\x78\x01\x01" // deflate, window of 32 KiB; the last block, stored
	sizes    = 4              // length of the block, and its complement
)

// pack returns counters that are not zero in HdrHistogram's V2 compressed format, base64. It does not compress: a histogram
// of a second has a hundred bytes, and to inflate it cost a third of the time in which a run is read.
func pack(list []bucket) string {
	const head = packedHead + len(zlibHead) + sizes
	b := make([]byte, head, 256)
	be := binary.BigEndian
	b = be.AppendUint32(b, uint32(hdrhistogram.V2EncodingCookieBase)|0x10)
	b = append(b, make([]byte, 8)...) // length, see below; normalizing offset
	b = be.AppendUint32(b, digits)
	b = be.AppendUint64(b, lowest)
	b = be.AppendUint64(b, uint64(highest))
	b = be.AppendUint64(b, math.Float64bits(1)) // of whole numbers to others
	next := 0
	for _, n := range list {
		switch zeros := n.index - next; zeros {
		case 0:
		case 1:
			b = append(b, 0)
		default:
			b = appendZigzag(b, -int64(zeros))
		}
		b, next = appendZigzag(b, n.count), n.index+1
	}
	plain := b[head:] // at most 40 bytes and 9 for each counter: it fits into a block
	be.PutUint32(plain[4:], uint32(len(plain)-hdrhistogram.ENCODING_HEADER_SIZE))
	be.PutUint32(b, uint32(hdrhistogram.V2CompressedEncodingCookieBase)|0x10)
	be.PutUint32(b[4:], uint32(len(b)-packedHead+adler.Size))
	copy(b[packedHead:], zlibHead)
	binary.LittleEndian.PutUint16(b[head-sizes:], uint16(len(plain)))
	binary.LittleEndian.PutUint16(b[head-sizes/2:], ^uint16(len(plain)))
	return base64.StdEncoding.EncodeToString(be.AppendUint32(b, adler.Update(1, plain)))
}

// stored returns the content of z, in zlib's format, if z is one stored block.
func stored(z []byte) (plain []byte, ok bool) {
	rest, ok := bytes.CutPrefix(z, []byte(zlibHead))
	if !ok || len(rest) < sizes+adler.Size {
		return nil, false
	}
	n := binary.LittleEndian.Uint16(rest)
	plain, end := rest[sizes:len(rest)-adler.Size], rest[len(rest)-adler.Size:]
	return plain, ^n == binary.LittleEndian.Uint16(rest[2:]) && int(n) == len(plain) && adler.Update(1, plain) == binary.BigEndian.Uint32(end)
}

// unpack decodes base64 and zlib, and checks both heads.
func (d *HistogramReader) unpack(text []byte) bool {
	if n := base64.StdEncoding.DecodedLen(len(text)); cap(d.packed) < n {
		d.packed = make([]byte, n)
	}
	n, err := base64.StdEncoding.Decode(d.packed[:cap(d.packed)], text)
	if err != nil || n < packedHead {
		return false
	}
	mark, size := binary.BigEndian.Uint32(d.packed), int64(binary.BigEndian.Uint32(d.packed[4:]))
	if mark&^0xf0 != uint32(hdrhistogram.V2CompressedEncodingCookieBase) || size > int64(n-packedHead) {
		return false
	}
	const most = hdrhistogram.ENCODING_HEADER_SIZE + 9*counters // the largest possible length
	z := d.packed[packedHead : packedHead+size]
	if plain, ok := stored(z); ok {
		d.plain = append(d.plain[:0], plain...)
		return ours(d.plain)
	}
	d.source.Reset(z)
	if d.unzip == nil {
		d.plain = make([]byte, most+1)
		d.unzip, err = zlib.NewReader(&d.source)
	} else {
		err = d.unzip.(zlib.Resetter).Reset(&d.source, nil)
	}
	if err != nil {
		return false
	}
	for d.plain = d.plain[:0]; err == nil && len(d.plain) < cap(d.plain); {
		n, err = d.unzip.Read(d.plain[len(d.plain):cap(d.plain)])
		d.plain = d.plain[:len(d.plain)+n]
	}
	return errors.Is(err, io.EOF) && ours(d.plain)
}

// ours reports whether the head of the histogram b has the geometry of this package.
func ours(b []byte) bool {
	if len(b) < hdrhistogram.ENCODING_HEADER_SIZE {
		return false
	}
	number := func(at int) int64 { return int64(binary.BigEndian.Uint64(b[at:])) }
	return binary.BigEndian.Uint32(b)&^0xf0 == uint32(hdrhistogram.V2EncodingCookieBase) &&
		int64(binary.BigEndian.Uint32(b[4:])) == int64(len(b)-hdrhistogram.ENCODING_HEADER_SIZE) &&
		binary.BigEndian.Uint32(b[12:]) == digits && number(16) == lowest && number(24) == highest &&
		math.Float64frombits(uint64(number(32))) == 1
}

// unpacked appends the counters that are not zero to into. plain holds a histogram
// as it is packed: a head, then counts, and runs of zeros as negative numbers, in
// ZigZag LEB128.
func unpacked(into []bucket, plain []byte) (all []bucket, total int64, ok bool) {
	b := plain[hdrhistogram.ENCODING_HEADER_SIZE:]
	for at := int64(0); len(b) > 0; {
		n, size := int64(b[0]>>1)^-int64(b[0]&1), 1 // of most
		if b[0] >= 0x80 {
			n, size = zigzag(b)
		}
		if size == 0 || at >= counters {
			return into, 0, false
		}
		b = b[size:]
		if n < 0 {
			if n < -counters || at-n > counters {
				return into, 0, false
			}
			at -= n
			continue
		}
		if n > math.MaxInt64-total {
			return into, 0, false
		}
		if n > 0 {
			into = append(into, bucket{int(at), n})
			total += n
		}
		at++
	}
	return into, total, true
}

// zigzag reads a number of 1 to 9 bytes, of which the ninth has 8 bits; size
// is 0 if b is cut off.
func zigzag(b []byte) (n int64, size int) {
	var v uint64
	for i := range min(len(b), 9) {
		if i == 8 {
			v |= uint64(b[i]) << 56
		} else {
			v |= uint64(b[i]&0x7f) << (7 * i)
		}
		if i == 8 || b[i] < 0x80 {
			return int64(v>>1) ^ -int64(v&1), i + 1
		}
	}
	return 0, 0
}

// appendZigzag appends a number as zigzag reads it.
func appendZigzag(b []byte, n int64) []byte {
	v := uint64(n<<1) ^ uint64(n>>63)
	for range 8 {
		if v < 0x80 {
			return append(b, byte(v))
		}
		b, v = append(b, byte(v)|0x80), v>>7
	}
	return append(b, byte(v))
}
