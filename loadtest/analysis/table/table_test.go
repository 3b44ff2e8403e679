package table

import (
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
	"weir/loadtest/analysis/table/header"
)

func read(t *testing.T, text string, o Options) *Table {
	t.Helper()
	table, err := Read("t.csv", strings.NewReader(text), o)
	require.NoError(t, err)
	return table
}

func xs(values []Value) []float64 {
	var out []float64
	for _, v := range values {
		if !v.Known {
			v.X = -1
		}
		out = append(out, v.X)
	}
	return out
}

func TestRead(t *testing.T) {
	curve := map[Kind][]float64{Clients: {1, 10.5}, Throughput: {125e6, 1.25e9}}
	tests := []struct {
		name, text string
		o          Options
		want       map[Kind][]float64
	}{
		{"commas", "clients,throughput (Gbit/s)\n1,1\n10.5,10\n", Options{}, curve},
		{"semicolons and decimal commas", "Jobs;Throughput [Gbit/s]\n1,0;1,0\n10,5;10\n", Options{}, curve},
		{"three digits behind a comma that is decimal for sure", "Jobs;Throughput [Gbit/s]\n1,000;1\n10,500;10,0\n", Options{}, curve},
		{"tabs", "users\tbandwidth Gbps\n1\t1\n10.5\t10\n", Options{}, curve},
		{"blanks", "  n   throughput_gbps\n 1.0   1.0\n10.5  10.0  \n", Options{}, curve},
		{"mark, carriage returns, comments, empty lines", "\ufeff# of 2017\r\nclients,throughput_mbps\r\n\r\n1,1000\r\n# peak\r\n10.5,10000\r\n",
			Options{}, curve},
		{"old line ends", "clients,throughput_mbps\r1,1000\r10.5,10000", Options{}, curve},
		{"quotes", "\"clients, mean\",\"the \"\"throughput\"\" (MB/s)\"\n\"1\",125\n\"10.5\" ,1250\n", Options{}, curve},
		{"names of the first document", "Avg Throughput:(Gbits/sec),Avg # Jobs:,Avg Throughput per Job:\n1,1,9\n10,10.5,9\n", Options{}, curve},
		{"chosen by name and unit", "a,b,c\n9,1,1\n9,10.5,10\n", Options{Columns: map[Kind]string{Clients: "B", Throughput: "c"}, Unit: "Gbit/s"},
			curve},
		{"no names", "9 1 1\n9 10.5 10\n", Options{Columns: map[Kind]string{Clients: "2", Throughput: "3"}, Unit: "Gbps"}, curve},
		{"separator chosen", "clients|throughput_gbps\n1|1\n10.5|10\n", Options{Separator: '|'}, curve},
		{"a column that is called by number", "5,clients,throughput_gbps\n7,1,1\n7,10.5,10\n",
			Options{Columns: map[Kind]string{Clients: "clients"}}, curve},
		{"everything", "step,time (min),threads,ops/s,mean wall clock time (ms),errors,error rate " +
			"(%)\na,0,1,5,20,0,1\na,1,2,6,,1,2.5\nb,0,3,7,30,2,-\n", Options{},
			map[Kind][]float64{Step: {1, 1, 2}, Time: {0, 60, 0}, Clients: {1, 2, 3}, Rate: {5, 6, 7}, Latency: {0.02, -1, 0.03}, Errors: {0, 1, 2},
				ErrorRatio: {0.01, 0.025, -1}}},
		{"moments, error ratio in percent", "time;jobs;MB/s;error_ratio\n2017-01-18T03:53:57Z;1;1;5%\n2017-01-18T03:54:27Z;2;2;0,01\n", Options{},
			map[Kind][]float64{Time: {1484711637, 1484711667}, Clients: {1, 2}, Throughput: {1e6, 2e6}, ErrorRatio: {0.05, 0.01}}},
		{"percent in the header and in a cell", "jobs;MB/s;error rate (%)\n1;1;5%\n2;2;1\n", Options{},
			map[Kind][]float64{Clients: {1, 2}, Throughput: {1e6, 2e6}, ErrorRatio: {0.05, 0.01}}},
		{"curve.csv",
			"step,clients,active_clients,throughput_bytes_per_second,throughput_low,throughput_high,operations_per_second,errors,error_ratio,latency_mean_seconds,latency_p99_seconds\n" +
				"1,1,1,5,4,6,2,0,0,0.5,0.9\n", Options{},
			map[Kind][]float64{Step: {1}, Clients: {1}, Throughput: {5}, Rate: {2}, Errors: {0}, ErrorRatio: {0}, Latency: {0.5}}},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			table := read(t, c.text, c.o)
			got := map[Kind][]float64{}
			for k, v := range table.Found {
				got[k] = xs(v)
			}
			near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(b) })
			if d := cmp.Diff(c.want, got, near); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestUnits(t *testing.T) {
	for name, want := range map[string]float64{
		"Gbit/s": 125e6, "gbit/s": 125e6, "Gbits/sec": 125e6, "Gbps": 125e6, "gbps": 125e6, "Gb/s": 125e6, "GB/s": 1e9, "GiB/s": 1 << 30,
		"MB/sec": 1e6,
		"MBps":   1e6, "Mbps": 125e3, "mbps": 125e3, "kbit/s": 125, "bit/s": 0.125, "B/s": 1, "bytes_per_second": 1, "megabits_per_second": 125e3,
		"gigabytes per second": 1e9,
		"MiB/s":                1 << 20, "Tbit/s": 125e9, "mb/s": 0, "gb/s": 0, // may be either
	} {
		if got, ok := header.ParseUnit("throughput_"+name, header.Throughput); !ok || got != want {
			t.Errorf("%s: %v %v, want %v", name, got, ok, want)
		}
	}
	for _, name := range []string{"ops", "steps", "Gbit", "furlongs/s", "", "ps", "/s"} {
		if got, ok := header.ParseUnit(name, header.Throughput); ok {
			t.Errorf("%q is %v", name, got)
		}
	}
}

// Each mistake is reported with its position and its correction.
func TestMistakes(t *testing.T) {
	const head = "clients,throughput (Gbit/s)\n"
	tests := []struct{ name, text, want string }{
		{"empty", "", "t.csv: empty: a table has a line of column names"},
		{"comments only", "# nothing\n\n", "t.csv: empty"},
		{"header only", head, "t.csv: the table has a header but no rows"},
		{"text for a number", head + "1,1\n2,fast\n",
			`t.csv:3:3: "fast" is not a number: throughput (Gbit/s) must be a number such as 12.5, with its unit in the header or behind the number`},
		{"unit in the cell", head + "1,9.4 parsec\n", `t.csv:2:3: "9.4 parsec" is not a number`},
		{"column after wide characters", "clients,remark,throughput (Gbit/s)\n1,höher,x\n", `t.csv:2:9: "x" is not a number`},
		{"thousands", "clients;throughput (Gbit/s)\n1.000,5;2\n", `t.csv:2:1: "1.000,5": write clients without thousands separators`},
		{"quoted thousands", head + "\"12,500\",1\n", `t.csv:2:1: "12,500": write clients without thousands separators`},
		{"one or a thousand", "clients;throughput (Gbit/s)\n1,000;2\n", "a decimal comma or a thousands separator: write 1000 or 1.000"},
		{"commas and points", "clients;throughput (Gbit/s)\n1;2,5\n2;3.5\n", "t.csv:3:3: the table has numbers with commas and with points " +
			"(first in lines 2 and 3)"},
		{"not a number", head + "1,NaN\n", `t.csv:2:3: "NaN": throughput (Gbit/s) must be a finite number`},
		{"infinite", head + "1,-Inf\n", `t.csv:2:3: "-Inf": throughput (Gbit/s) must be a finite number`},
		{"too large for a number", head + "1,1e999\n", `t.csv:2:3: "1e999": throughput (Gbit/s) must be a finite number`},
		{"negative", head + "-1,1\n", `t.csv:2:1: "-1": clients must not be negative`},
		{"hexadecimal", head + "0x10,1\n", `t.csv:2:1: "0x10" is not a number`},
		{"missing clients", head + ",1\n", "t.csv:2:1: clients is missing: enter a number, or remove the row"},
		{"missing throughput", head + "1,\n", "t.csv:2:3: throughput (Gbit/s) is missing"},
		{"too few cells", head + "1\n", "t.csv:2:2: 1 cell where line 1 has 2 (separated by commas)"},
		{"too many cells", head + "1,2,3\n", "t.csv:2:5: 3 cells where line 1 has 2 (separated by commas)"},
		{"open quote", head + "\"1,2\n", "t.csv:2:1: unterminated quote"},
		{"one column", "clients\n1\n2\n", "t.csv:1:1: only one column"},
		{"no clients", "throughput_gbps,x\n1,2\n",
			`no column for the number of clients, such as clients, jobs, users, threads or concurrency: choose it with --clients; "x": not used`},
		{"no throughput", "clients,x\n1,2\n", "no column for the throughput"},
		{"no names", "1,2\n3,4\n", "t.csv:1:1: the first line has no column names: choose columns by number"},
		{"two columns of clients", "jobs,users,throughput_gbps\n1,2,3\n",
			`t.csv:1:6: "jobs" and "users" may both be the column for clients: choose one with --clients, by name or by number (1 or 2)`},
		{"the same name twice", "clients,throughput_gbps,throughput_gbps\n1,2,3\n", `may both be the column for throughput`},
		{"no unit", "clients,throughput\n1,2\n", `t.csv:1:9: "throughput" has no unit of throughput`},
		{"bits or bytes", "clients,throughput mb/s\n1,2\n", `t.csv:1:9: "throughput mb/s" may mean bits or bytes`},
		{"error ratio above one", "clients,throughput_gbps,error_ratio\n1,2,5\n",
			`t.csv:2:5: "5": an error ratio must be between 0 and 1, or end with %`},
		{"time backward", "time,clients,throughput_gbps\n2,1,2\n1,1,2\n", "t.csv:3: the time does not increase"},
		{"no time", "time,clients,throughput_gbps\nnoon,1,2\n", `t.csv:2:1: "noon" is not a time`},
		{"binary", "clients,\x00", "t.csv:1: a byte of value 0: this is a binary file, not a text table"},
		{"other encoding", "clients,throughput_gbps\n1,\xff\n", "t.csv:2: not UTF-8"},
		{"UTF-16", "\xff\xfec\x00", "t.csv: the text is UTF-16: save it as UTF-8"},
		{"a long line", strings.Repeat("x", 1<<17), "t.csv:1: a line of more than 65536 bytes"},
		{"many columns", strings.Repeat("1,", 1000) + "1\n", "t.csv:1:401: more than 200 columns"},
		{"too many clients", head + "1e12,1\n", `t.csv:2:1: "1e12" is too large`},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read("t.csv", strings.NewReader(c.text), Options{})
			var at *Error
			if !errors.As(err, &at) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("said %q\nwant %q", err, c.want)
			}
		})
	}
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"unknown name":   {Options{Columns: map[Kind]string{Clients: "jobs"}}, `--clients "jobs": no column has that name`},
		"number too far": {Options{Columns: map[Kind]string{Clients: "3"}}, "--clients 3: the table has 2 columns"},
		"the same twice": {Options{Columns: map[Kind]string{Clients: "1", Throughput: "clients"}},
			"--clients and --throughput name the same column"},
		"unknown unit": {Options{Unit: "furlong/s"}, `--unit "furlong/s": use a unit such as Gbit/s`},
	} {
		if _, err := Read("t.csv", strings.NewReader(head+"1,2\n"), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: said %q", name, err)
		}
	}
}

// A file that is too large is rejected before it takes all memory.
func TestHuge(t *testing.T) {
	if _, err := Read("t.csv", io.LimitReader(endless{}, 1<<40), Options{}); err == nil ||
		!strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Error(err)
	}
}

func TestTooMany(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
	}{
		"rows": {"n,throughput_gbps\n" + strings.Repeat("1,2\n", 1_000_001), "t.csv:1000002: more than 1000000 rows: use means, " +
			"for example of 30 s"},
		"cells": {"n,throughput_gbps" + strings.Repeat(",x", 98) + "\n" + strings.Repeat("1,2"+strings.Repeat(",3", 98)+"\n", 40_001),
			"t.csv:40001: more than 4000000 cells"},
	} {
		if _, err := Read("t.csv", strings.NewReader(c.text), Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = "1,2\n"[i%4]
	}
	return len(p), nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("is a directory") }

func TestUnreadable(t *testing.T) {
	if _, err := Read("t.csv", broken{}, Options{}); err == nil || err.Error() != "reading t.csv: is a directory" {
		t.Error(err)
	}
}

// Any text is either read or rejected with a message; a table that was read has columns of equal
// length and finite values.
func FuzzRead(f *testing.F) {
	f.Add("clients,throughput (Gbit/s)\n1,2\n3,4\n", 0)
	f.Add("Jobs;Throughput [Gbit/s]\n1,0;1,0\n", int(';'))
	f.Add("n throughput_gbps\n1 \"2\"\n", int(' '))
	f.Add("time,step,clients,MB/s\n2017-01-18T03:53:57Z,a,1,2\n", int(','))
	f.Add("\ufeff\"\"\"\n\r\r\n\t", int('\t'))
	f.Fuzz(func(t *testing.T, text string, separator int) {
		if separator < 0 || separator > 0x10ffff {
			separator = 0
		}
		table, err := Read("t.csv", strings.NewReader(text), Options{Separator: rune(separator)})
		if err != nil {
			if err.Error() == "" {
				t.Fatal("no words")
			}
			return
		}
		for k, column := range table.Found {
			if len(column) != table.Len() {
				t.Fatalf("%v has %d of %d values", k, len(column), table.Len())
			}
			for _, v := range column {
				if v.Known && (math.IsNaN(v.X) || math.IsInf(v.X, 0)) {
					t.Fatalf("%v has %v", k, v)
				}
			}
		}
	})
}
