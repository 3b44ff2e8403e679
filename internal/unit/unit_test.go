package unit

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func check[T quantity](t *testing.T, parse func(string) (T, error), cases map[string]T) {
	t.Helper()
	for text, want := range cases {
		got, err := parse(text)
		if err != nil || got != want {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestParse(t *testing.T) {
	check(t, ParseSize, map[string]Size{
		"0": 0, "000": 0, "0B": 0, "20B": 20, "300kB": 300_000, "1KiB": 1024, "1.5MiB": 1572864, "1 GB": 1e9, "2TiB": 2 << 40, "1.1MiB": 1153434,
		"9223372036854775807B": math.MaxInt64, "8191PiB": 8191 << 50, "1.0B": 1,
	})
	check(t, ParseBitrate, map[string]Bitrate{
		"0": 0, "100Mbit/s": 1e8, "1.5Gbit/s": 1.5e9, "12MB/s": 96e6, "1KiB/s": 8192, "1bit/s": 1, "1 kbit/s": 1000, "1e3bit/s": 1000,
	})
	check(t, ParseRate, map[string]Rate{"0": 0, "10/s": 10, "600/min": 10, "36000/h": 10, "0.5/s": 0.5, "1 /s": 1})
	check(t, ParseDuration, map[string]Duration{
		"0": 0, "1.5s": Duration(1500 * time.Millisecond), "60m": Duration(time.Hour), "1h30m": Duration(90 * time.Minute),
		"2d": Duration(48 * time.Hour), "250ms": Duration(250 * time.Millisecond), "1d1ns": Duration(24*time.Hour + 1),
		"3µs": 3000, "3μs": 3000, "3us": 3000, "1 s": Duration(time.Second), "1h 30m": Duration(90 * time.Minute),
		"0.5d": Duration(12 * time.Hour),
	})
	check(t, ParseFraction, map[string]Fraction{"0": 0, "1%": 0.01, "0.5": 0.5, "50 %": 0.5, "100%": 1, "7%": 0.07, "0.1%": 0.001,
		"0.999": 0.999})
}

func TestString(t *testing.T) {
	for want, got := range map[string]string{
		"0B": Size(0).String(), "1MiB": Size(1 << 20).String(), "1.5GB": Size(15e8).String(), "300B": Size(300).String(),
		"1.5KiB":  Size(1536).String(),
		"1000MiB": Size(1000 << 20).String(), "1536001B": Size(1536001).String(), "-5B": Size(-5).String(),
		"100Mbit/s": Bitrate(1e8).String(), "1.25Gbit/s": Bitrate(1.25e9).String(), "96kbit/s": Bitrate(96e3).String(),
		"0bit/s": Bitrate(0).String(),
		"10/s":   Rate(10).String(), "1/min": Rate(1. / 60).String(), "1/h": Rate(1. / 3600).String(), "0.5/s": Rate(0.5).String(),
		"1.5s": Duration(1500 * time.Millisecond).String(), "1h": Duration(time.Hour).String(), "1h30m": Duration(90 * time.Minute).String(),
		"2d": Duration(48 * time.Hour).String(), "250ms": Duration(250 * time.Millisecond).String(), "0s": Duration(0).String(),
		"1m500ms": Duration(60500 * time.Millisecond).String(), "1m1.5s": Duration(61500 * time.Millisecond).String(),
		"1.5ms": Duration(1500 * time.Microsecond).String(), "7ns": Duration(7).String(),
		"1%": Fraction(0.01).String(), "7%": Fraction(0.07).String(), "33.3%": Fraction(0.333).String(), "100%": Fraction(1).String(),
		"0%": Fraction(0).String(),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestErrorsSayWhatWouldBeRight(t *testing.T) {
	size := func(s string) error { _, err := ParseSize(s); return err }
	speed := func(s string) error { _, err := ParseBitrate(s); return err }
	rate := func(s string) error { _, err := ParseRate(s); return err }
	span := func(s string) error { _, err := ParseDuration(s); return err }
	share := func(s string) error { _, err := ParseFraction(s); return err }
	for _, c := range []struct {
		parse      func(string) error
		text, want string
	}{
		{size, "100", `"100" has no unit; write a size as in 1MiB, 300kB or 20B`},
		{size, "", `"" is not a size; write a number and its unit, as in 1MiB, 300kB or 20B`},
		{size, "-1MB", `"-1MB" is negative; a size cannot be`},
		{size, "1M", `"1M" is ambiguous; write 1MB for powers of 1000 or 1MiB for powers of 1024`},
		{size, "4KB", `"4KB" is ambiguous; write 4kB for powers of 1000 or 4KiB for powers of 1024`},
		{size, "1mib", `"1mib" has an unknown unit; did you mean 1MiB?`},
		{size, "1furlong", `"1furlong" has the unknown unit "furlong"; write a size as in 1MiB, 300kB or 20B`},
		{size, "0.5B", `"0.5B" is not a whole number of bytes`},
		{size, "8192PiB", `"8192PiB" is too large for a size`},
		{size, "99999999999999999999B", `"99999999999999999999B" is too large for a size`},
		{size, "1e3MB", `"1e3MB" is not a size; write a plain number and its unit, as in 1MiB, 300kB or 20B`},
		{size, strings.Repeat("x", 100),
			`"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..." is not a size; write a number and its unit, as in 1MiB, 300kB or 20B`},
		{speed, "1Gbps", `"1Gbps" has an unknown unit; did you mean 1Gbit/s?`},
		{speed, "1Gbit", `"1Gbit" has an unknown unit; did you mean 1Gbit/s?`},
		{speed, "100", `"100" has no unit; write a speed as in 100Mbit/s, 1Gbit/s or 12MB/s`},
		{speed, "NaN", `"NaN" is not a speed; write a number and its unit, as in 100Mbit/s, 1Gbit/s or 12MB/s`},
		{speed, "1e999bit/s", `"1e999bit/s" is too large for a speed`},
		{rate, "10", `"10" has no unit; write a rate as in 10/s, 600/min or 5000/h`},
		{rate, "10/m", `"10/m" has an unknown unit; did you mean 10/min?`},
		{rate, "-1/s", `"-1/s" is negative; a rate cannot be`},
		{rate, "Inf/s", `"Inf/s" is not a rate; write a number and its unit, as in 10/s, 600/min or 5000/h`},
		{span, "10", `"10" has no unit; write a duration as in 1.5s, 250ms, 60m or 2d`},
		{span, "10min", `"10min" has the unknown unit "min"; did you mean 10m?`},
		{span, "1h10sec", `"1h10sec" has the unknown unit "sec"; did you mean 1h10s?`},
		{span, "1h5", `"1h5" has the unknown unit "h5"; write a duration as in 1.5s, 250ms, 60m or 2d`},
		{span, "0.5ns", `"0.5ns" is not a whole number of nanoseconds`},
		{span, "200000d", `"200000d" is too large for a duration`},
		{span, "106751d24h", `"106751d24h" is too large for a duration`},
		{span, "-5s", `"-5s" is negative; a duration cannot be`},
		{span, "", `"" is not a duration; write a number and its unit, as in 1.5s, 250ms, 60m or 2d`},
		{span, "2w", `"2w" is in weeks; write days, as in 7d`},
		{share, "101%", `"101%" is more than 100%`},
		{share, "5", `"5" is more than 100%; did you mean 5%?`},
		{share, "1", `"1" is ambiguous; write "1%" or "100%"`},
		{share, "-1%", `"-1%" is negative; a share cannot be`},
		{share, "all", `"all" is not a share; write a number and its unit, as in 1%, 50% or 0.5`},
	} {
		if err := c.parse(c.text); err == nil || err.Error() != c.want {
			t.Errorf("%q:\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
}

func round[T quantity](t *testing.T, x T, parse func(string) (T, error)) {
	t.Helper()
	got, err := parse(x.String())
	if err != nil || got != x {
		t.Fatalf("%v reads back as %v, %v", x, got, err)
	}
}

func TestRoundTrips(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		n := r.Int64() >> r.IntN(63)
		round(t, Size(n), ParseSize)
		round(t, Duration(n), ParseDuration)
		round(t, Size(n/1000*1000), ParseSize)
		round(t, Duration(n/1e6*1e6), ParseDuration)
		x := math.Float64frombits(r.Uint64() >> 1)
		if math.IsNaN(x) || math.IsInf(x, 0) {
			continue
		}
		round(t, Bitrate(x), ParseBitrate)
		round(t, Rate(x), ParseRate)
		round(t, Rate(float64(r.IntN(1000))/60), ParseRate)
		round(t, Fraction(r.Float64()), ParseFraction)
		round(t, Fraction(math.Mod(x, 1)), ParseFraction)
	}
	round(t, Size(math.MaxInt64), ParseSize)
	round(t, Duration(math.MaxInt64), ParseDuration)
	round(t, Bitrate(math.MaxFloat64), ParseBitrate)
	round(t, Rate(math.SmallestNonzeroFloat64), ParseRate)
	round(t, Fraction(math.SmallestNonzeroFloat64), ParseFraction)
}

func TestJSON(t *testing.T) {
	type all struct {
		S Size
		B Bitrate
		R Rate
		D Duration
		F Fraction
	}
	want := all{1 << 20, 1e9, 2.5, Duration(time.Minute), 0.01}
	b, err := json.Marshal(want)
	if err != nil || string(b) != `{"S":"1MiB","B":"1Gbit/s","R":"2.5/s","D":"1m","F":"1%"}` {
		t.Fatalf("%s, %v", b, err)
	}
	var got all
	if err := json.Unmarshal(b, &got); err != nil || got != want {
		t.Errorf("got %v, %v", got, err)
	}
	for _, x := range []any{Size(-1), Bitrate(math.NaN()), Rate(math.Inf(1)), Duration(-1), Fraction(2)} {
		if b, err := json.Marshal(x); err == nil {
			t.Errorf("%v is written as %s although it cannot be read", x, b)
		}
	}
}

func TestDisplay(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Bits(1.04e9), "8.32 Gbit/s"}, {Bits(0), "0 bit/s"}, {Bits(124.99e6), "1.00 Gbit/s"}, {Bits(1), "8 bit/s"}, {Bits(math.NaN()), "n/a"},
		{Bits(12.34e6), "98.7 Mbit/s"}, {Bits(-125e6), "-1.00 Gbit/s"}, {Bits(1e18), "8.00 Ebit/s"},
		{Bytes(1048576), "1.05 MB"}, {Bytes(999), "999 B"}, {Bytes(1000), "1.00 kB"}, {Bytes(99949), "99.9 kB"}, {Bytes(99950), "100 kB"},
		{Count(42), "42"}, {Count(8320), "8.32 k"}, {Count(1234567), "1.23 M"}, {Count(0), "0"}, {Count(0.5), "0.500"}, {Count(3.14159), "3.14"},
		{Seconds(0.0012), "1.2 ms"}, {Seconds(0.00123456), "1.23 ms"}, {Seconds(17.5), "17.5 s"}, {Seconds(125), "2m5s"}, {Seconds(0), "0 s"},
		{Seconds(1e-6), "1 us"}, {Seconds(2.5e-7), "250 ns"}, {Seconds(0.99999), "1 s"}, {Seconds(-0.5), "-500 ms"}, {Seconds(-125), "-2m5s"},
		{Seconds(math.Inf(1)), "n/a"}, {Seconds(3600), "1h"}, {Seconds(100), "100 s"},
		{Percent(0.012), "1.2%"}, {Percent(0), "0%"}, {Percent(1), "100%"}, {Percent(1e-7), "<0.001%"}, {Percent(0.00012), "0.012%"},
		{Percent(3.5), "350%"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"1MiB", "100Mbit/s", "600/min", "1h30m", "1%", "-1", "1e3bit/s", "0.1µs", "1 d", "", ".", "1.e", "0000000.1B",
		"1Ebps", "9e-323%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if x, err := ParseSize(s); err == nil {
			round(t, x, ParseSize)
		}
		if x, err := ParseBitrate(s); err == nil {
			round(t, x, ParseBitrate)
		}
		if x, err := ParseRate(s); err == nil {
			round(t, x, ParseRate)
		}
		if x, err := ParseDuration(s); err == nil {
			round(t, x, ParseDuration)
		}
		if x, err := ParseFraction(s); err == nil {
			round(t, x, ParseFraction)
		}
	})
}

func FuzzDisplay(f *testing.F) {
	for _, x := range []float64{0, 1, 999.5, 1e-12, 1e300, math.NaN(), math.Inf(-1)} {
		f.Add(x)
	}
	f.Fuzz(func(t *testing.T, x float64) {
		for _, text := range []string{Bits(x), Bytes(x), Count(x), Seconds(x), Percent(x)} {
			if text == "" || strings.ContainsAny(text, "eN") {
				t.Errorf("%v shows as %q", x, text)
			}
		}
	})
}
