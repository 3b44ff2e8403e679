package screen

import (
	"math"
	"strings"
	"testing"
	"time"
)

// The least important parts are left out first, and no row is wider than the limit.
func TestRow(t *testing.T) {
	p := Progress{
		Where: "step 3 of 5: hold", Detail: " 12 of 30 s", Share: .52, Left: 74 * time.Second,
		Now: time.Date(2026, 3, 1, 14, 2, 0, 0, time.UTC),
	}
	for columns, want := range map[int]string{
		80: " step 3 of 5: hold 12 of 30 s  [########........]  52%  1:14 left, ends 14:03:14",
		60: " step 3 of 5: hold  [###########...........]  52%  1:14 left",
		40: " step 3 of 5: hold  52%  1:14 left",
		30: " step 3 of 5: hold  52%",
		10: " step 3 of",
	} {
		if got := p.Row(columns, Look{}); got != want {
			t.Errorf("%d columns:\n%q, want\n%q", columns, got, want)
		}
	}
	p.Most, p.Left = true, time.Hour
	if got, want := p.Row(100, Look{Blocks: true}), " step 3 of 5: hold 12 of 30 s  ▕"; !strings.HasPrefix(got, want) ||
		!strings.HasSuffix(got, " at most 1:00:00 left, until 15:02") {
		t.Errorf("%q", got)
	}
	if got := (Progress{Where: "preparing", Share: Unknown, Left: Unknown}).Row(80, Look{}); got != " preparing" {
		t.Errorf("%q", got)
	}
	for columns := range 200 {
		for _, share := range []float64{Unknown, 0, .001, .5, 1, 2, math.Inf(1)} {
			p.Share, p.Pad = share, columns%50
			for _, l := range []Look{{}, {Color: true, Blocks: true}} {
				if n := cells(p.Row(columns, l)); n > columns {
					t.Errorf("%d columns of %d", n, columns)
				}
			}
		}
	}
}

func TestClock(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0:00", 7400 * time.Millisecond: "0:07", 760 * time.Second: "12:40", 3723 * time.Second: "1:02:03",
		73 * time.Hour: "3 days 1:00",
	} {
		if got := Clock(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestSpark(t *testing.T) {
	for want, got := range map[string]string{
		"▁▅█":    Spark([]float64{9, 0, 4, 8}, 3),
		"▁▁":     Spark([]float64{0, 0}, 9),
		"":       Spark(nil, 9),
		"▁█▁▁▁▁": Spark([]float64{-1, 1, math.NaN(), 0, 0, 0}, 9),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := Spark([]float64{1}, -1); got != "" {
		t.Errorf("%q", got)
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text, want string
		columns    int
	}{
		{"abc", "ab", 2}, {"abc", "abc", 3}, {"", "", 0}, {"ééé", "éé", 2},
		{Red + "abc" + Normal, Red + "ab" + Normal, 2}, {Red + "abc" + Normal, Red + "abc" + Normal, 3}, {"\x1b[31", "\x1b[31", 4},
	} {
		if got := cut(c.text, c.columns); got != c.want {
			t.Errorf("%q at %d: %q, want %q", c.text, c.columns, got, c.want)
		}
	}
}

func TestBlocks(t *testing.T) {
	for _, c := range []struct {
		all, lang, term string
		want            bool
	}{
		{"", "en_US.UTF-8", "xterm", true}, {"C", "en_US.UTF-8", "xterm", false}, {"C.utf8", "C", "xterm", true},
		{"", "", "xterm", false}, {"", "de_DE.UTF-8", "linux", false},
	} {
		t.Setenv("LC_ALL", c.all)
		t.Setenv("LC_CTYPE", "")
		t.Setenv("LANG", c.lang)
		t.Setenv("TERM", c.term)
		if got := Blocks(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
