package scan

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestFloatIsThatOfStrconv reads numbers of all lengths, followed by a comma, and texts that are
// not numbers.
func TestFloatIsThatOfStrconv(t *testing.T) {
	texts := []string{"0", "0.0", "0.1", "0.000001", "123456789012.345", "12345678901234.5", "1.23456789012345", "0.999999999999999",
		"99999999999999.9", "999999999999999", "9007199254740993", "0.30000000000000004", "1e3", "1.5e-7", "-0.25", "-3"}
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		texts = append(texts, strconv.FormatFloat(r.Float64()*1e6, 'f', r.IntN(16), 64))
	}
	for _, text := range texts {
		want, err := strconv.ParseFloat(text, 64)
		l := Line{b: []byte(text + ",")}
		if got := l.Float(); err != nil || got != want || l.i != len(text) || l.refused {
			t.Errorf("%s is read as %v, with %q left", text, got, l.b[l.i:])
		}
	}
	for _, text := range []string{"", ".5", "1.", "00.5", "1.2.3", "1.5e", "--1", "1.5-2", "+1.5", "01", "1e999"} {
		l := Line{b: []byte(text)}
		if x := l.Float(); !l.refused {
			t.Errorf("%q is taken for %v", text, x)
		}
	}
}
