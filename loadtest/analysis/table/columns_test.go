package table

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Tables that strangers fed to weir analyze, with the right reading. Columns of other kinds must not
// be read.
func TestColumnsOfStrangers(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want map[Kind][]float64
	}{
		"micro sign": {"clients,IOPS,latency (µs)\n1,1000,1000\n",
			map[Kind][]float64{Clients: {1}, Rate: {1000}, Latency: {1e-3}}},
		"Greek mu": {"clients,IOPS,latency (μs)\n1,1000,1000\n",
			map[Kind][]float64{Clients: {1}, Rate: {1000}, Latency: {1e-3}}},
		"millis": {"concurrency,MiB/s,latency_millis\n1,1,5\n",
			map[Kind][]float64{Clients: {1}, Throughput: {1 << 20}, Latency: {5e-3}}},
		"microsecond": {"concurrency,MiB/s,latency microsecond\n1,1,5\n",
			map[Kind][]float64{Clients: {1}, Throughput: {1 << 20}, Latency: {5e-6}}},
		"an unknown unit": {"concurrency,MiB/s,latency (jiffies)\n1,1,5\n",
			map[Kind][]float64{Clients: {1}, Throughput: {1 << 20}}},
		"a length of time": {"clients,MB/s,mean latency (ms) over 10 s\n1,100,10\n",
			map[Kind][]float64{Clients: {1}, Throughput: {1e8}, Latency: {0.01}}},
		"slots": {"slots,jobs/h,wall clock time (s)\n10,600,60\n80,2500,115\n",
			map[Kind][]float64{Clients: {10, 80}, Rate: {600. / 3600, 2500. / 3600}, Latency: {60, 115}}},
		"throughput of a client": {"nodes,MB/s,MB/s/client\n63,500,8\n",
			map[Kind][]float64{Clients: {63}, Throughput: {5e8}}},
		"rate of a thread": {"threads,ops/s,ops/s/thread\n4,8,2\n", map[Kind][]float64{Clients: {4}, Rate: {8}}},
		"time of a job": {"jobs,MB/s,time/job (s)\n4,8,2\n",
			map[Kind][]float64{Clients: {4}, Throughput: {8e6}}},
		"arrivals": {"threads,MB/s,users/s\n4,8,2\n",
			map[Kind][]float64{Clients: {4}, Throughput: {8e6}}},
		"percentiles": {"clients,MB/s,latency 95% (ms),95th percentile latency,latency_90th_ms,quantile 0.95\n4,8,2,3,4,5\n",
			map[Kind][]float64{Clients: {4}, Throughput: {8e6}}},
		"an error bar": {"threads,requests/s,requests done,latency error (ms)\n1,100,1000,500\n",
			map[Kind][]float64{Clients: {1}, Rate: {100}, Done: {1000}}},
		"success": {"clients,MB/s,success rate (%)\n1,100,98\n",
			map[Kind][]float64{Clients: {1}, Throughput: {1e8}, ErrorRatio: {0.02}}},
		"a minute": {"clients,files/min\n1,60\n", map[Kind][]float64{Clients: {1}, Rate: {1}}},
		"an hour": {"clients,requests per hour\n1,3600\n",
			map[Kind][]float64{Clients: {1}, Rate: {1}}},
		"one word": {"clients,req_per_sec\n1,5\n", map[Kind][]float64{Clients: {1}, Rate: {5}}},
		"fio": {"numjobs,bw (MiB/s)\n2,1\n",
			map[Kind][]float64{Clients: {2}, Throughput: {1 << 20}}},
		"virtual": {"vusers,rps\n2,1\n", map[Kind][]float64{Clients: {2}, Rate: {1}}},
		"gets": {"threads,GET/s,latency (ms)\n1024,391000,2\n",
			map[Kind][]float64{Clients: {1024}, Rate: {391000}, Latency: {2e-3}}},
		"other things": {"clients,X/s\n1,9\n2,15\n",
			map[Kind][]float64{Clients: {1, 2}, Rate: {9, 15}}},
		"other things beside a throughput": {"clients,MB/s,interrupts/s\n1,9,1000\n",
			map[Kind][]float64{Clients: {1}, Throughput: {9e6}}},
		"units in cells": {"clients;throughput;latency\n1;4.1 Gbit/s;12 ms\n2;8 Gbit/s;1.5s\n",
			map[Kind][]float64{Clients: {1, 2}, Throughput: {4.1e9 / 8, 1e9}, Latency: {0.012, 1.5}}},
		"an amount in a cell": {"clients,throughput\n1,110MiB\n",
			map[Kind][]float64{Clients: {1}, Throughput: {110 << 20}}},
		"two latencies": {"clients,MB/s,read latency (ms),write latency (ms)\n1,10,1,2\n", map[Kind][]float64{Clients: {1}, Throughput: {1e7}}},
		"errors in percent": {"clients,MB/s,errors\n1,10,0%\n2,20,1%\n",
			map[Kind][]float64{Clients: {1, 2}, Throughput: {1e7, 2e7}, ErrorRatio: {0, 0.01}}},
		"a unit in the cell is right": {"clients,MB/s\n1,100\n2,1 GB/s\n",
			map[Kind][]float64{Clients: {1, 2}, Throughput: {1e8, 1e9}}},
		"thousands of requests": {"clients,requests/s\n1,391k\n2,1.2M\n",
			map[Kind][]float64{Clients: {1, 2}, Rate: {391e3, 1.2e6}}},
		"a zone without a colon": {"time,clients,MB/s\n2025-12-17T11:58:08.821-0600,1,1\n2025-12-17T11:58:09.821-0600,1,1\n",
			map[Kind][]float64{Time: {1765994288.821, 1765994289.821}, Clients: {1, 1}, Throughput: {1e6, 1e6}}},
		"milliseconds since 1970": {"timeStamp,clients,MB/s\n1765994288821,1,1\n1765994289821,1,1\n",
			map[Kind][]float64{Time: {1765994288.821, 1765994289.821}, Clients: {1, 1}, Throughput: {1e6, 1e6}}},
		"decimals of printf": {"clients,MB/s\n1,1.250\n2,12.500\n",
			map[Kind][]float64{Clients: {1, 2}, Throughput: {1.25e6, 12.5e6}}},
		"decimals, proved": {"clients;MB/s\n1;1.250\n2;12.5\n",
			map[Kind][]float64{Clients: {1, 2}, Throughput: {1.25e6, 12.5e6}}},
		"three decimals": {"clients,MB/s\n1,1.250\n2,2.500\n",
			map[Kind][]float64{Clients: {1, 2}, Throughput: {1.25e6, 2.5e6}}},
	} {
		t.Run(name, func(t *testing.T) {
			table := read(t, c.text, Options{})
			got := map[Kind][]float64{}
			for k, v := range table.Found {
				got[k] = xs(v)
			}
			if d := cmp.Diff(c.want, got, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) })); d != "" {
				t.Error(d)
			}
			for _, column := range table.Columns {
				if column.Fact.Code == "" {
					t.Errorf("%s: no meaning", column.Name)
				}
			}
		})
	}
}

// Tables that are refused, each with a position or the option that helps.
func TestRefusedTables(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a thousand with a point": {"jobs;Mbit/s\n100;80\n500;390\n1.000;700\n2.000;900\n", "t.csv:4:1: "},
		"thousands alone":         {"jobs;Mbit/s\n1.000;700\n2.000;900\n", "t.csv:2:1: "},
		"mixed":                   {"jobs\tMbit/s\n500\t390\n1.000\t700\n", "t.csv:3:1: "},
		"no rate":                 {"clients,RPS\n1,100\n8,\n", "t.csv:3:3: "},
		"no rate but a dash":      {"clients,RPS\n1,100\n8,-\n", "t.csv:3:3: "},
		"no rate but n/a":         {"clients,RPS\n1,100\n8,n/a\n", "t.csv:3:3: "},
		"no latency":              {"clients,latency (ms)\n1,100\n8,n/a\n", "t.csv:3:3: "},
		"seconds and dates":       {"time,clients,MB/s\n1,1,1\n2025-12-17T11:58:08Z,1,1\n", "t.csv:3:1: "},
		"with and without a zone": {"time,clients,MB/s\n2025-12-17T11:58:08,1,1\n2025-12-17T11:58:09Z,1,1\n", "t.csv:3:1: "},
		"latency without a unit":  {"clients,latency\n1,100\n", "t.csv:1:9: "},
		"rate without a unit":     {"clients,rate\n1,100\n", "t.csv:1:9: "},
		"only quotients":          {"clients,MB/s/client\n1,100\n", "--throughput"},
		"elapsed time":            {"jobs,elapsed (s)\n1,100\n", "--latency"},
		"two rates":               {"tasks,creates/s,stats/s\n1,10,20\n", "t.csv:1:17: "},
		"an error bar":            {"clients,throughput error (MB/s)\n1,100\n", "--throughput"},
	} {
		_, err := Read("t.csv", strings.NewReader(c.text), Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: said %v, want %q", name, err, c.want)
		}
	}
}

// Options choose columns that are not recognized, and units that headers lack.
func TestOptionsOfColumns(t *testing.T) {
	table := read(t, "threads,users,total,p95,ms\n1,9,8,7,6\n2,9,8,7,6\n", Options{Unit: "MB/s,ms",
		Columns: map[Kind]string{Clients: "threads", Throughput: "total", Latency: "p95"}})
	if got := table.Value(Throughput, 0).X; got != 8e6 {
		t.Errorf("throughput %v", got)
	}
	if got := table.Value(Latency, 0).X; math.Abs(got-7e-3) > 1e-12 {
		t.Errorf("latency %v", got)
	}
	used := 0
	for _, c := range table.Columns {
		if c.Used {
			used++
		}
	}
	if used != 3 {
		t.Errorf("%d columns are used: %+v", used, table.Columns)
	}
	if _, err := Read("t.csv", strings.NewReader("threads,users,MB/s\n1,2,3\n"), Options{}); err == nil {
		t.Error("two columns of clients are read")
	}
}
