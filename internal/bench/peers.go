package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// curlSide runs curl with arguments that move so many bytes.
func (r *rig) curlSide(bytes int64, group int, args ...string) side {
	argv := append([]string{"curl", "--silent", "--show-error", "--fail"}, args...)
	return side{"curl", func(ctx context.Context) (figures, error) {
		var u usage
		served, err := during(group, func() (err error) {
			u, err = runChild(ctx, nil, nil, argv...)
			return err
		})
		if err != nil {
			return nil, err
		}
		f := figures{throughput: float64(bytes) / u.wall.Seconds(), clientCPU: u.cpu.Seconds() / (float64(bytes) / 1e9)}
		if group > 0 {
			f[serverCPU] = served.Seconds() / (float64(bytes) / 1e9)
			f[serverBusy] = f[serverCPU] * f[throughput] / 1e9
		}
		return f, nil
	}}
}

// curlGets reads url n times over so many connections.
func curlGets(url string, n, streams int) []string {
	args := []string{url + "?[1-" + strconv.Itoa(n) + "]", "--output", "/dev/null"}
	return append(args, parallel(streams)...)
}

// curlPuts sends file n times below url over so many connections. Names come
// again, so that what lies there stays small.
func curlPuts(file, url string, n, streams int) []string {
	var args []string
	for i := range n {
		args = append(args, "--upload-file", file, url+"/curl-"+strconv.Itoa(i%32), "--output", "/dev/null")
	}
	return append(args, parallel(streams)...)
}

func parallel(streams int) []string {
	if streams == 1 {
		return nil
	}
	return []string{"--parallel", "--parallel-immediate", "--parallel-max", strconv.Itoa(streams)}
}

// iperfSide receives with iperf3 over so many streams; the sender uses
// sendfile.
func (r *rig) iperfSide(port string, streams int) side {
	return side{"iperf3 -R -Z", func(ctx context.Context) (figures, error) {
		seconds := max(1, int(r.hold.Round(time.Second).Seconds()))
		u, err := runChild(ctx, nil, nil, "iperf3", "--client", "127.0.0.1", "--port", port, "--reverse", "--zerocopy",
			"--parallel", strconv.Itoa(streams), "--time", strconv.Itoa(seconds), "--json")
		if err != nil {
			return nil, err
		}
		var said struct {
			End struct {
				Received struct {
					Bytes float64 `json:"bytes"`
					Rate  float64 `json:"bits_per_second"`
				} `json:"sum_received"`
			} `json:"end"`
		}
		if err := json.Unmarshal(u.out, &said); err != nil {
			return nil, fmt.Errorf("iperf3: %w", err)
		}
		got := said.End.Received
		return figures{throughput: got.Rate / 8, clientCPU: u.cpu.Seconds() / (got.Bytes / 1e9)}, nil
	}}
}

// wrkSide asks for url over so many connections with one thread.
func (r *rig) wrkSide(url string, connections int) side {
	return side{"wrk", func(ctx context.Context) (figures, error) {
		seconds := max(1, int(r.hold.Round(time.Second).Seconds()))
		u, err := runChild(ctx, nil, nil, "wrk", "-t1", "-c", strconv.Itoa(connections), "-d", strconv.Itoa(seconds)+"s", url)
		if err != nil {
			return nil, err
		}
		perSecond, err := number(`Requests/sec:\s+([0-9.]+)`, u.out)
		if err != nil {
			return nil, err
		}
		requests, err := number(`([0-9]+) requests in`, u.out)
		if err != nil {
			return nil, err
		}
		return figures{rate: perSecond, requestCPU: u.cpu.Seconds() / requests}, nil
	}}
}

// number finds a number in what a program wrote.
func number(pattern string, text []byte) (float64, error) {
	m := regexp.MustCompile(pattern).FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("no %s in %q", pattern, text)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}
