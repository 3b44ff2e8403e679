package fit

import (
	"encoding/binary"
	"math"
	"testing"
)

// FuzzOf checks that no points cause a panic or an endless loop, and that the results can be
// printed.
func FuzzOf(f *testing.F) {
	pack := func(values ...float64) []byte {
		var b []byte
		for _, v := range values {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		return b
	}
	var plain []float64
	for _, p := range seed() {
		plain = append(plain, p.Clients, p.Yield)
	}
	f.Add(pack(plain...), uint8(0), 0.0)
	f.Add(pack(1, 1, 0.1, 2, 2, 0.1, 3, 3, 0, 4, 3.1, 0.2, 5, 2.5, 0.1, 6, 2, 0.3, 7, 1, 0.1, 9, 0, 0.1), uint8(1), 0.0)
	f.Add(pack(1, 1, 1, 2, 2, 2, 4, 3, 3, 8, 4, 4, 16, 4, 9, 32, 3, 20, 64, 2, 50, 128, 1, 120), uint8(2), 0.0)
	f.Add(pack(1, 5, 1, 5, 1, 5, 2, 5, 3, 5, 4, 5, 5, 5, 6, 5, 7, 5, 8, 5), uint8(0), 3.0)
	f.Add(pack(1e-30, 1e30, 1e30, 1e-30, math.NaN(), math.Inf(1), -1, 0), uint8(0), -1.0)
	f.Fuzz(func(t *testing.T, data []byte, kind uint8, think float64) {
		columns := 2
		if kind %= 4; kind > 0 {
			columns = 3
		}
		var points []Point
		for ; len(data) >= 8*columns && len(points) < 40; data = data[8*columns:] {
			var v [3]float64
			for i := range columns {
				v[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
			}
			p := Point{Clients: v[0], Yield: v[1]}
			switch kind {
			case 1:
				p.Error = v[2]
			case 2:
				p.Busy = v[2]
			case 3:
				p.Batches = []float64{v[1], v[2], 2*v[1] - v[2]}
			}
			points = append(points, p)
		}
		fits, err := Of(points, Options{Resamples: 20, Think: think})
		if err != nil {
			return
		}
		sane(t, "fuzzed", fits)
	})
}
