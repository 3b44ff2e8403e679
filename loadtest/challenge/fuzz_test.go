package challenge

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// FuzzParse checks that any file and any matrix are either refused, or have a finite estimate and a
// plan.
func FuzzParse(f *testing.F) {
	dir := f.TempDir()
	f.Add(whole, "")
	f.Add(two+"matrix: m.csv\nprofile: [{for: 1m, at: 50%, ramp: true}]\n", "x;A;B\nA;;1Gbit/s\n")
	f.Add(two+"matrix: m.csv\nmatrix_unit: MB/s\nlinks: [{from: \"*\", to: B, scitag: 70}]\nprofile: [{for: 1m, at: 50%}]\n",
		"x,A,B\nA,,\"3\"\n")
	f.Add(whole+"files: {size: {uniform: [1B, 1PB]}, linger: 300d}\nceiling: 1bit/s\n", "")
	f.Fuzz(func(t *testing.T, text, csv string) {
		if strings.Contains(text, "matrix") && os.WriteFile(filepath.Join(dir, "m.csv"), []byte(csv), 0o600) != nil {
			t.Skip("no space for the matrix")
		}
		c, err := Parse(filepath.Join(dir, "c.yaml"), []byte(text), nil, nil)
		if err != nil {
			return
		}
		e := c.Estimate()
		for _, x := range []float64{e.Bytes, e.Copies, e.Rate, e.Sources, e.Sites[0].SpaceMost, e.Requests.Copies, c.Target(0, time.Second)} {
			if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
				t.Fatalf("%v is not an estimate of\n%s", x, text)
			}
		}
		if err := c.WriteText(io.Discard); err != nil {
			t.Fatal(err)
		}
	})
}
