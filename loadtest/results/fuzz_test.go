package results

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/measure"
)

// FuzzHistogram reads intervals with histograms whose compressed content is damaged: they are
// rejected, or can be used like any other.
func FuzzHistogram(f *testing.F) {
	var h measure.Histogram
	for i := range 100 {
		h.Record(time.Duration(i) * time.Millisecond)
	}
	inner, cookie := unpack(f, h)
	f.Add(inner)
	for _, at := range []int{0, 4, 8, 12, 16, 24, 32} { // the fields of its header
		for _, b := range []byte{0x00, 0x7f, 0x80, 0xff} {
			bad := bytes.Clone(inner)
			bad[at] = b
			f.Add(bad)
		}
	}
	f.Fuzz(func(t *testing.T, inner []byte) {
		iv := new(measure.Interval)
		line := fmt.Sprintf(`{"start":"2026-01-01T00:00:00Z","latency_seconds":{"count":1,"sum":1,"hdr":%q}}`, pack(inner, cookie))
		if decode([]byte(line), iv) != nil || checkInterval(iv) != nil {
			return
		}
		var sum measure.Histogram
		sum.Merge(&iv.Latency)
		sum.Merge(&iv.Latency)
		for _, q := range []float64{0, 0.5, 0.999, 1} {
			if x := sum.Quantile(q); x < 0 {
				t.Errorf("quantile %v is %v", q, x)
			}
		}
		_ = sum.Max()
		sum.Buckets(func(_, _ float64, _ int64) {})
		if _, err := json.Marshal(&sum); err != nil {
			t.Error(err)
		}
	})
}

// unpack returns the uncompressed content of h's encoding, and the cookie before it.
func unpack(f *testing.F, h measure.Histogram) (inner, cookie []byte) {
	b, err := json.Marshal(h)
	require.NoError(f, err)
	var j struct{ HDR string }
	require.NoError(f, json.Unmarshal(b, &j))
	raw, err := base64.StdEncoding.DecodeString(j.HDR)
	require.NoError(f, err)
	r, err := zlib.NewReader(bytes.NewReader(raw[8:]))
	require.NoError(f, err)
	if inner, err = io.ReadAll(r); err != nil {
		f.Fatal(err)
	}
	return inner, raw[:4]
}

func pack(inner, cookie []byte) string {
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	_, _ = w.Write(inner) // into memory
	_ = w.Close()
	out := binary.BigEndian.AppendUint32(bytes.Clone(cookie), uint32(z.Len()))
	return base64.StdEncoding.EncodeToString(append(out, z.Bytes()...))
}
