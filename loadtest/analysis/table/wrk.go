package table

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

var (
	wrkClients  = regexp.MustCompile(`(?m)^\s*\d+ threads and (\d+) connections`)
	wrkLatency  = regexp.MustCompile(`(?m)^\s*Latency\s+([\d.]+)(us|ms|s|m|h)\s`)
	wrkRate     = regexp.MustCompile(`(?m)^Requests/sec:\s+([\d.]+)`)
	wrkTransfer = regexp.MustCompile(`(?m)^Transfer/sec:\s+([\d.]+)([KMGTP]?)B`)
	wrkRequests = regexp.MustCompile(`(?m)^\s*(\d+) requests in `)
	wrkSockets  = regexp.MustCompile(`(?m)^\s*Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)`)
	wrkStatus   = regexp.MustCompile(`(?m)^\s*Non-2xx or 3xx responses: (\d+)`)
)

// readWrk reads the text of wrk or wrk2, of one run or of several. Their megabytes are of 1024 x
// 1024 bytes (units.c), their latency is the mean.
func readWrk(text string) (*result, error) {
	r := &result{}
	for i, run := range strings.Split("\n"+text, "\nRunning ") {
		if i == 0 && !wrkClients.MatchString(run) {
			continue
		}
		sum, err := wrkRow(run)
		if err != nil {
			return nil, err
		}
		r.rows = append(r.rows, sum)
	}
	r.add(Clients, "connections", "")
	r.add(Throughput, "Transfer/sec", "MiB/s")
	r.add(Rate, "Requests/sec", "/s")
	r.add(Latency, "Latency Avg", "")
	r.add(Errors, "socket errors, non-2xx or 3xx responses", "")
	r.add(Done, "requests", "")
	return r, nil
}

func wrkRow(run string) (row, error) {
	number := func(form *regexp.Regexp) (float64, string, bool) {
		m := form.FindStringSubmatch(run)
		if m == nil {
			return 0, "", false
		}
		x, err := strconv.ParseFloat(m[1], 64)
		return x, m[len(m)-1], err == nil
	}
	clients, _, ok := number(wrkClients)
	latency, unit, okLatency := number(wrkLatency)
	rate, _, okRate := number(wrkRate)
	transfer, prefix, okTransfer := number(wrkTransfer)
	requests, _, okRequests := number(wrkRequests)
	if !ok || !okLatency || !okRate || !okTransfer || !okRequests {
		return nil, errors.New("wrk: the output of a run is not complete: " +
			"it needs the connections, Latency, requests, Requests/sec and Transfer/sec")
	}
	bad, _, _ := number(wrkStatus)
	failed := bad
	for _, m := range wrkSockets.FindAllStringSubmatch(run, 1) {
		for _, text := range m[1:] {
			x, _ := strconv.ParseFloat(text, 64)
			failed += x
		}
		late, _ := strconv.ParseFloat(m[4], 64)
		bad += late // a response after the timeout is one of the requests
	}
	return row{
		Clients: clients, Rate: rate, Errors: failed, Done: max(0, requests-bad),
		Latency:    latency * map[string]float64{"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}[unit],
		Throughput: transfer * map[string]float64{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}[prefix],
	}, nil
}
