package bench

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weir/loadtest/measure"
)

// A load is one run of weir: its scenario as a user would write it, and its flags.
type load struct {
	target  string
	kind    string // read, write
	file    string // to read, below the target
	size    int64  // of files to write
	clients string // of each step
	jobs    int    // of each client, 0 for as many as possible
	think   time.Duration
	ramp    time.Duration
	settle  time.Duration
	hold    time.Duration
	drain   time.Duration          // 0 for ten seconds
	seed    int                    // differs between runs: it decides which operations are verified
	most    int64                  // bytes after which it ends, 0 for no limit
	flags   []string               // additional flags of weir run
	more    string                 // lines for workload
	auth    string                 // the line of auth, if any
	env     []string               // more variables, NAME=VALUE
	see     func(dir string) error // called with the run directory at the end; may be nil
}

// scenario writes the load to a file. Settings that it omits have weir's defaults: 1% of the
// operations are verified, the host is monitored each second.
func (l load) scenario(dir string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "name: bench\ntarget: %s\nseed: %d\n", l.target, l.seed)
	b.WriteString(l.auth)
	if l.file != "" {
		list := filepath.Join(dir, "files.txt")
		if err := os.WriteFile(list, []byte(l.file+"\n"), 0o644); err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "files: {list: %s}\n", list)
	}
	fmt.Fprintf(&b, "workload:\n  kind: %s\n", l.kind)
	if l.size > 0 {
		fmt.Fprintf(&b, "  size: %dB\n", l.size)
	}
	if l.think > 0 {
		fmt.Fprintf(&b, "  think: %s\n", l.think)
	}
	b.WriteString(l.more)
	jobs := ""
	if l.jobs > 0 {
		jobs = fmt.Sprintf("jobs: %d, ", l.jobs)
	}
	fmt.Fprintf(&b, "load: {clients: [%s], "+jobs+"ramp: %s, warmup: %s, duration: %s, graceful_stop: %s}\n", l.clients, l.ramp, l.settle,
		l.hold, cmp.Or(l.drain, 10*time.Second))
	if l.most > 0 {
		fmt.Fprintf(&b, "stop: {bytes: %dB}\n", l.most)
	}
	path := filepath.Join(dir, "scenario.yaml")
	return path, os.WriteFile(path, []byte(b.String()), 0o644)
}

// An outcome is the result of a run of weir and its cost.
type outcome struct {
	usage
	curve     []point
	intervals []measure.Interval
}

// A point has the fields of a step in findings.json that are used here.
type point struct {
	Throughput float64  `json:"throughput_bytes_per_second"`
	Rate       *float64 `json:"operations_per_second"`
}

// run runs weir run on a load. An invalid result (code 4) is accepted, since most runs are invalid
// if client and server compete for two cores.
func (r *rig) run(l load, watch func(context.Context, int)) (outcome, error) {
	dir := r.path("run")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return outcome{}, err
	}
	defer os.RemoveAll(dir)
	l.seed = r.count
	path, err := l.scenario(dir)
	if err != nil {
		return outcome{}, err
	}
	out := filepath.Join(dir, "out")
	argv := append(append([]string{"env"}, l.env...), append([]string{r.weir, "run", path, "--quiet", "--out", out}, l.flags...)...)
	u, err := runChild(r.Context(), watch, []int{4}, argv...)
	if err != nil {
		return outcome{}, err
	}
	if l.see != nil {
		if err := l.see(out); err != nil {
			return outcome{}, err
		}
	}
	o := outcome{usage: u}
	return o, errors.Join(o.readFindings(out), o.readIntervals(out))
}

func (o *outcome) readFindings(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, "findings.json"))
	if err != nil {
		return err
	}
	var found struct {
		Curve []point `json:"curve"`
	}
	if err := json.Unmarshal(b, &found); err != nil {
		return err
	}
	if len(found.Curve) == 0 {
		return errors.New("weir found no curve")
	}
	o.curve = found.Curve
	return nil
}

func (o *outcome) readIntervals(dir string) error {
	f, err := os.Open(filepath.Join(dir, "intervals.jsonl"))
	if err != nil {
		return err
	}
	defer f.Close()
	lines := json.NewDecoder(bufio.NewReader(f))
	for {
		var v measure.Interval
		err := lines.Decode(&v)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		o.intervals = append(o.intervals, v)
	}
}

// sum adds up the intervals of a phase, "" for all of them.
func (o *outcome) sum(phase string) (all measure.Sum) {
	for i := range o.intervals {
		v := &o.intervals[i]
		if phase == "" || v.Phase == phase {
			all.Add(&v.Sum)
		}
	}
	return all
}

// check returns an error if a run had failed operations: its figures would mean nothing.
func (o *outcome) check() error {
	classes := map[string]int64{}
	for _, v := range o.intervals {
		for class, n := range v.Failed {
			if c := fmt.Sprint(class); c != "canceled" {
				classes[c] += n
			}
		}
	}
	if len(classes) > 0 {
		return fmt.Errorf("weir counted errors: %v", classes)
	}
	return nil
}

// weirSide measures a load; the server's CPU counts if there is one.
func (r *rig) weirSide(l load, group int) side {
	return side{"weir", func() (figures, error) {
		var o outcome
		served, err := during(group, func() (err error) {
			o, err = r.run(l, nil)
			return err
		})
		if err != nil {
			return nil, err
		}
		if err := o.check(); err != nil {
			return nil, err
		}
		all, last := o.sum(""), o.curve[len(o.curve)-1]
		if all.Done == 0 || last.Rate == nil {
			return nil, errors.New("nothing was done")
		}
		f := figures{rate: *last.Rate, requestCPU: o.cpu.Seconds() / float64(all.Done), failed: float64(o.failures())}
		if gb := float64(all.Moved) / 1e9; gb > 0 {
			f[throughput], f[clientCPU], f[serverCPU] = last.Throughput, o.cpu.Seconds()/gb, served.Seconds()/gb
			f[serverBusy] = f[serverCPU] * f[throughput] / 1e9
		} else {
			f[serverBusy] = served.Seconds() / o.wall.Seconds()
		}
		if group == 0 {
			delete(f, serverCPU)
			delete(f, serverBusy)
		}
		return f, nil
	}}
}

// held returns the begin and the end of the measurement time.
func (o *outcome) held() (from, to time.Time) {
	for _, v := range o.intervals {
		if v.Phase != measure.Measured {
			continue
		}
		if from.IsZero() || v.Start.Before(from) {
			from = v.Start
		}
		if end := v.Start.Add(time.Duration(v.Seconds * 1e9)); end.After(to) {
			to = end
		}
	}
	return from, to
}

// connected returns the end of the interval in which the n-th connection was made, from the start
// of the load, and the number of connections up to then. It returns 0 and the number of all
// connections if there are fewer than n.
func (o *outcome) connected(n int64) (time.Duration, int64) {
	var all int64
	for _, v := range o.intervals {
		all += v.Sessions
		if all >= n {
			end := v.Start.Add(time.Duration(v.Seconds * 1e9))
			return end.Sub(o.intervals[0].Start), all
		}
	}
	return 0, all
}

// failures counts the operations that failed, without operations that were canceled at the end of
// the run.
func (o *outcome) failures() (all int64) {
	for _, v := range o.intervals {
		for class, n := range v.Failed {
			if fmt.Sprint(class) != "canceled" {
				all += n
			}
		}
	}
	return all
}
