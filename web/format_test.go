package web

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/unit"
	"weir/lab/labtest"
	"weir/loadtest/report/figure"
)

// node runs a script that may import the modules of src, and returns what it
// prints. The test is skipped where Node or the bundler is missing.
func node(t *testing.T, script string, input []byte) []byte {
	t.Helper()
	labtest.Need(t, "node")
	if _, err := os.Stat("node_modules/.bin/esbuild"); err != nil {
		if os.Getenv("WEIR_REQUIRE") == "all" {
			t.Fatal("web/node_modules is missing: make web installs it")
		}
		t.Skip("web/node_modules is missing: make web installs it")
	}
	bundle := exec.CommandContext(t.Context(), "node_modules/.bin/esbuild", "--bundle", "--format=cjs", "--platform=node",
		"--log-level=warning", "--loader:.css=empty")
	bundle.Dir, bundle.Stdin, bundle.Stderr = ".", strings.NewReader(script), os.Stderr
	code, err := bundle.Output()
	require.NoError(t, err)
	run := exec.CommandContext(t.Context(), "node", "-e", string(code))
	run.Stdin, run.Stderr = bytes.NewReader(input), os.Stderr
	out, err := run.Output()
	require.NoError(t, err)
	return out
}

// numbers are those at which rounding goes wrong, and many others.
func numbers() []float64 {
	all := []float64{0, 1, -1, 0.5, 1.5, 2.5, 1.125, 1.135, 1.115, 0.0625, 999.4, 999.5, 999.49999, 999.5e3, 0.9995, 0.99949, 119.99, 119.5,
		120, 120.4, 3600, 86399.6, 86400, 90061, 1e9, 1e12, 1e15, 1e18, 1e21, 1e24, 1.5e300,
		1e-3, 0.9995e-3, 0.9994e-3, 1e-6, 1e-9, 1e-12, 9.995, 9.994999, 99.95, 9.985, 12345678, 9999999, 10000000, 99999.5, 123456, 2097152,
		1e-5, 0.99e-5}
	r := rand.New(rand.NewPCG(1, 2))
	for range 4000 {
		x := math.Pow(10, r.Float64()*30-14) * (r.Float64() - 0.2)
		all = append(all, x, math.Round(x)+0, math.Round(x*8)/8+0) // no quantity is -0
	}
	return all
}

// The script writes quantities letter for letter as internal/unit does.
func TestFormat(t *testing.T) {
	xs := numbers()
	input, err := json.Marshal(xs)
	require.NoError(t, err)
	var got map[string][]string
	out := node(t, `import * as f from "./src/format";
		const xs = JSON.parse(require("fs").readFileSync(0));
		const axis = (unit, factor) => ({label: "", unit, factor, min: 0, max: 1, ticks: []});
		const all = {bits: f.bits, bytes: f.bytes, count: f.count, seconds: f.seconds, percent: f.percent, significant: f.significant,
			text: x => f.text(axis("", 1), x), gbits: x => f.show(axis("Gbit/s", 8e-9), x), min: x => f.show(axis("min", 1/60), x),
			share: x => f.show(axis("%", 100), x), ops: x => f.show(axis("k ops/s", 1e-3), x)};
		console.log(JSON.stringify(Object.fromEntries(Object.entries(all).map(([name, of]) => [name, xs.map(of)]))));`, input)
	require.NoError(t, json.Unmarshal(out, &got))
	for name, of := range map[string]func(float64) string{
		"bits": unit.Bits, "bytes": unit.Bytes, "count": unit.Count, "seconds": unit.Seconds, "percent": unit.Percent,
		"significant": unit.Significant,
		"text":        (&figure.Axis{Factor: 1}).Text, "min": unit.Seconds,
	} {
		wrong := 0
		for i, x := range xs {
			if want := of(x); got[name][i] != want {
				if wrong++; wrong < 6 {
					t.Errorf("%s of %v: the script writes %q, Go %q", name, x, got[name][i], want)
				}
			}
		}
		if wrong > 5 {
			t.Errorf("%s: and %d more", name, wrong-5)
		}
	}
	for i, x := range xs { // by way of an axis' factor a value may move by its last bit
		const bit = 1e-15
		if g := got["gbits"][i]; g != unit.Bits(x) && g != unit.Bits(x*(1+bit)) && g != unit.Bits(x*(1-bit)) {
			t.Errorf("gbits of %v: %q, not %q", x, g, unit.Bits(x))
		}
		if g := got["share"][i]; g != unit.Percent(x) && g != unit.Percent(x*(1+bit)) && g != unit.Percent(x*(1-bit)) {
			t.Errorf("share of %v: %q, not %q", x, g, unit.Percent(x))
		}
	}
	for i, want := range map[int]string{1: "1 ops/s", 0: "0 ops/s"} {
		if got["ops"][i] != want {
			t.Errorf("operations: %q, not %q", got["ops"][i], want)
		}
	}
}
