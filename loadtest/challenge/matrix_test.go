package challenge

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/document"
	"weir/internal/require"
	"weir/internal/unit"
)

// matrixOf parses a challenge of three sites with a matrix.
func matrixOf(t *testing.T, csv, rest string) (*Challenge, error) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "m.csv"), []byte(csv), 0o600))
	text := two + "  - {name: C, url: \"https://c.example.org/data\"}\nmatrix: m.csv\nprofile: [{for: 10m, at: 100%}]\n" + rest
	return Parse(filepath.Join(dir, "c.yaml"), []byte(text), nil, nil)
}

// linkRates returns the links of a challenge as text.
func linkRates(c *Challenge) string {
	var all []string
	for i := range c.Links {
		all = append(all, fmt.Sprintf("%s%s %v", c.Links[i].From, c.Links[i].To, c.Links[i].Rate))
	}
	return strings.Join(all, ", ")
}

func TestMatrix(t *testing.T) {
	for _, csv := range []string{
		"from/to,A,B,C\nA,,1Gbit/s,50MB/s\nB,0,,-\nC,20Mbit/s,,\n",
		"\ufeff# rates\nfrom/to;A;B;C\n A ; ;1Gbit/s; 50 MB/s\nB;0;;-\n;;;\nC;\"20Mbit/s\"\n",
		"\"from/to\",\"A\",\"B\",\"C\"\r\n\"A\",,1\u00a0Gbit/s,50\u202fMB/s\r\nC,20Mbit/s\r\n",
		"x,A,B,C\rA,,1Gbit/s,50MB/s\rC,20Mbit/s\r",
		"\tA\tB\tC\t\nA\t\t1Gbit/s\t50MB/s\tnote\nC\t20Mbit/s\t\t\n",
	} {
		c, err := matrixOf(t, csv, "")
		require.NoError(t, err)
		if got := linkRates(c); got != "AB 1Gbit/s, AC 400Mbit/s, CA 20Mbit/s" {
			t.Errorf("%s: %s", csv, got)
		}
	}
}

func TestUnitOfMatrix(t *testing.T) {
	c, err := matrixOf(t, "x,A,B\nA,,1.5\nB,10MB/s,\n", "matrix_unit: GB/s\n")
	require.NoError(t, err)
	if got := linkRates(c); got != "AB 12Gbit/s, BA 80Mbit/s" {
		t.Error(got)
	}
}

// TestNumbersOfMatrix checks numbers that no unit makes a rate.
func TestNumbersOfMatrix(t *testing.T) {
	for number, want := range map[string]string{"1e400": "too large", "-1": "negative", "NaN": "not a speed", "1_000": "1_000",
		"0x10": "0x10", `"1,5"`: "decimal comma; write 1.5"} {
		if _, err := matrixOf(t, "x,A,B\nA,,"+number+"\n", "matrix_unit: GB/s\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", number, err)
		}
	}
}

func TestLinksChangeTheMatrix(t *testing.T) {
	c, err := matrixOf(t, "x,A,B,C\nA,,1Mbit/s,2Mbit/s\nB,3Mbit/s,,\n", `links:
  - {from: "*", to: "*", in_flight: 7, scitag: 70}
  - {from: A, to: "*", mode: push}
  - {from: A, to: C, rate: 9Mbit/s, mode: pull}
  - {from: B, to: A, in_flight: 3}
  - {from: C, to: A, rate: 4Mbit/s}
`)
	require.NoError(t, err)
	var got []string
	for _, l := range c.Links {
		got = append(got, fmt.Sprint(l.From, l.To, " ", l.Rate, " ", l.Mode, " ", l.InFlight, " ", l.SciTag))
	}
	want := "AB 1Mbit/s push 7 70, AC 9Mbit/s pull 7 70, BA 3Mbit/s pull 3 70, CA 4Mbit/s pull 7 70"
	if strings.Join(got, ", ") != want {
		t.Errorf("links are %v", got)
	}
}

// TestMistakesOfMatrix checks the places of mistakes in a matrix.
func TestMistakesOfMatrix(t *testing.T) {
	for _, c := range []struct{ csv, has string }{
		{"x,A,B\nA,,@@10\n", "10MB/s, or name the unit of all numbers with matrix_unit"},
		{"x,A,B\nA,,@@10Mbps\n", "did you mean 10Mbit/s"},
		{"x,A,B\nA,,@@-5Mbit/s\n", "negative"},
		{"x,A,B\nA,@@5Mbit/s,\n", "leads to another site"},
		{"x,A,@@BB\nA,,1Mbit/s\n", "unknown destination"},
		{"x,A,B\n@@D,1Mbit/s,\n", "unknown source"},
		{"x,A,B,@@A\nB,1Mbit/s,,\n", "is repeated"},
		{"x,A,B\nA,,1Mbit/s\n@@A,,2Mbit/s\n", "first in line 2"},
		{"x,A,B\nA,,1Mbit/s,@@2Mbit/s\n", "3 columns"},
		{"@@", "the matrix is empty"},
		{"@@x,A,B\n", "the matrix has no rate"},
		{"@@ \n \n", "the matrix has no rate"},
		{"@@x,A,B\nA,,0\n", "the matrix has no rate"},
		{"x;A;B\nA;;@@1,5Gbit/s\n", "decimal comma; write 1.5Gbit/s"},
		{"x,A,B\nA,,@@1e400\n", "no unit"},
		{"x,A,B\nA,,@@1e400Gbit/s\n", "too large"},
		{"@@\xff\xfex\x00,\x00A\x00\n\x00", "save the table as CSV (UTF-8)"},
		{"@@x,A,B\nA,,1Mbit/s\x00\n", "save the table as CSV (UTF-8)"},
		{"x,A,B\nA,,@@NaNMbit/s\n", "is not a speed"},
	} {
		csv, line, column := place(c.csv)
		_, err := matrixOf(t, csv, "")
		var all document.Mistakes
		if !errors.As(err, &all) {
			t.Errorf("%s: %v", c.csv, err)
			continue
		}
		if m := all[0]; !strings.HasSuffix(m.File, "m.csv") || m.Line != line || m.Column != column || !strings.Contains(m.Text, c.has) {
			t.Errorf("%s: not at %d:%d with %q: %v", c.csv, line, column, c.has, all)
		}
	}
	all := mistakes(t, t.TempDir(), two+"matrix: none.csv\nprofile: [{for: 1m, at: 100%}]\n")
	if len(all) != 1 || all[0].Line != 4 {
		t.Errorf("a missing file: %v", all)
	}
}

// TestRatesAboveTheCapacity checks that rates of links and their sums are compared with the
// capacities of sites at the largest share, and that messages have both units and the hint at bytes.
func TestRatesAboveTheCapacity(t *testing.T) {
	for _, c := range []struct {
		links, site, share, has string
		hint                    bool
	}{
		{"[{from: A, to: B, rate: @@800MB/s}]", "in: 1Gbit/s", "100%", "6.40 Gbit/s (800 MB/s), but in of B is 1.00 Gbit/s (125 MB/s)", true},
		{"[{from: A, to: B, rate: @@20Gbit/s}]", "in: 1Gbit/s", "100%", "20.0 Gbit/s (2.50 GB/s)", false},
		{"[{from: B, to: A, rate: @@1Gbit/s}]", "out: 1500Mbit/s", "160%", "1.60 Gbit/s (200 MB/s) at 160%", true},
		{"[{from: A, to: B, rate: 600Mbit/s}, {from: C, to: B, rate: 500Mbit/s}]", "in: @@1Gbit/s", "100%",
			"1.10 Gbit/s (138 MB/s), more than its in of 1.00 Gbit/s (125 MB/s)", true},
		{"[{from: A, to: B, rate: 600Mbit/s}, {from: C, to: B, rate: 500Mbit/s}]", "in: 1Gbit/s", "90%", "", false},
		{"[{from: A, to: B, rate: 500Mbit/s}, {from: B, to: A, rate: 1Gbit/s}]", "in: 1Gbit/s, out: 1Gbit/s", "100%", "", false},
	} {
		text, line, column := place(strings.Replace(two, "name: B,", "name: B, "+c.site+",", 1) +
			"  - {name: C, url: \"https://c.example.org/data\"}\nlinks: " + c.links + "\nprofile: [{for: 10m, at: " + c.share + "}]\n")
		_, err := parse(t, text)
		var all document.Mistakes
		switch {
		case c.has == "":
			require.NoError(t, err)
		case !errors.As(err, &all) || len(all) != 1:
			t.Errorf("%s: %v", text, err)
		case all[0].Line != line || all[0].Column != column || !strings.Contains(all[0].Text, c.has) ||
			strings.Contains(all[0].Text, "Divided by 8") != c.hint:
			t.Errorf("not at %d:%d with %q, hint %v: %v", line, column, c.has, c.hint, all)
		}
	}
}

func TestSumsOfMatrix(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "m.csv"), []byte("x,A,B\nA,,300\nB,,\n"), 0o600))
	text := strings.Replace(two, "name: B,", "name: B, in: 1Gbit/s,", 1) + "matrix: m.csv\nmatrix_unit: MB/s\n" +
		"profile: [{for: 10m, at: 100%}]\n"
	all := mistakes(t, dir, text)
	if m := all[0]; len(all) != 1 || m.Line != 2 || m.Column != 4 || !strings.HasSuffix(m.File, "m.csv") ||
		!strings.Contains(m.Text, "300 Mbit/s (37.5 MB/s)") {
		t.Errorf("%v", all)
	}
}

func TestShareText(t *testing.T) {
	for text, want := range map[string]Share{"0": 0, "0%": 0, "12.5%": 0.125, "120 %": 1.2, "1000%": 10} {
		var s Share
		require.NoError(t, s.UnmarshalText([]byte(text)))
		if s != want {
			t.Errorf("%s is %v", text, float64(s))
		}
		var again Share
		require.NoError(t, again.UnmarshalText([]byte(s.String())))
		if again != s {
			t.Errorf("%v is read back as %v", s, again)
		}
	}
	for _, text := range []string{"", "1", "0.5", "-1%", "1001%", "x%", "NaN%"} {
		if err := new(Share).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is a share", text)
		}
	}
	if both(float64(unit.Bitrate(8e6))) != "8.00 Mbit/s (1.00 MB/s)" {
		t.Error(both(8e6))
	}
}
