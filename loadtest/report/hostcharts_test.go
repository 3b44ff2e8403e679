package report

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"weir/loadtest/analysis"
	"weir/loadtest/report/figure"
)

// manyHosts gives a run's series so many hosts with a point a second.
func manyHosts(s *analysis.Series, n, seconds int) {
	s.Hosts = nil
	for i := range n {
		h := analysis.HostSeries{Host: fmt.Sprintf("h%03d<b>", i), Role: "server", Cores: 8, Memory: 64e9}
		for k := range seconds {
			h.Points = append(h.Points, analysis.HostPoint{At: float64(k) + 1, Seconds: 1, CPU: float64(i) / float64(n), User: 0.1, System: 0.1,
				IOWait: 0.01, ServerCores: 1, ClientCores: -1,
				DiskBusy: 0.5, DiskRead: 1e6, DiskWrite: 1e5, Received: 1e7, Sent: 1e8 * float64(k%7), MemoryUsed: 1e9, ServerRSS: 1e8})
		}
		s.Hosts = append(s.Hosts, h)
	}
}

// Every host has its plots, the busiest first; a thousand of them give a page
// that still opens.
func TestEveryHostHasPlots(t *testing.T) {
	f, s := analyzed(t, small())
	manyHosts(s, 50, 900)
	each := eachHost(f, s)
	if len(each) != 50 || each[0].Host != "h049<b>" || each[49].Host != "h000<b>" {
		t.Fatalf("%d hosts, first %s", len(each), each[0].Host)
	}
	for _, h := range each {
		if n := len(h.Figures); n != 5 {
			t.Errorf("%s has %d plots", h.Host, n)
		}
		for _, c := range h.Figures {
			for _, l := range c.Lines {
				if len(l.Points) > hostPoints/50 {
					t.Errorf("%s: %s has %d points", c.ID, l.Name, len(l.Points))
				}
			}
		}
	}
	manyHosts(s, 1000, 900)
	page := page1(t, f, s)
	if len(page) > 5e6 || !strings.Contains(page, "The 64 busiest of 1000 hosts have plots of their own") ||
		strings.Contains(page, "h999<b>") {
		t.Errorf("%d bytes", len(page))
	}
	beside := hostCharts(f, s)
	if len(beside) != 3 || len(beside[0].Lines) != mostHosts || beside[0].Title != "CPU of the hosts (5 of 999)" {
		t.Errorf("%d plots of hosts beside each other: %s", len(beside), beside[0].Title)
	}
}

func TestJoinedKeepsTheMean(t *testing.T) {
	var points []figure.Point
	for i := range 1000 {
		points = append(points, figure.Point{X: float64(i), Y: float64(i % 13)})
	}
	got := joined(points, 100)
	if len(got) != 100 || math.Abs(meanOf(got)-meanOf(points)) > 1e-9 || got[0].X != 4.5 {
		t.Errorf("%d points with a mean of %g, want %g", len(got), meanOf(got), meanOf(points))
	}
	if len(joined(points, 2000)) != 1000 {
		t.Error("a short line was joined")
	}
}
