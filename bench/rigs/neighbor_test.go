package rigs

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// busyWord is the first argument of this program as a neighbor.
const busyWord = "busy-neighbor"

// runBusy keeps every core busy for a share of the time until its input ends.
func runBusy(args []string, out io.Writer) error {
	share, err := strconv.ParseFloat(args[0], 64)
	if err != nil {
		return err
	}
	for range runtime.NumCPU() {
		go func() {
			runtime.LockOSThread()
			const turn = 20 * time.Millisecond
			for {
				begin := time.Now()
				burn(time.Duration(share * float64(turn)))
				time.Sleep(turn - time.Since(begin))
			}
		}()
	}
	if _, err := fmt.Fprintln(out, "busy"); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin) // its end is ours
	return err
}

// neighbor starts a program that wants a share of every core.
func (s *stage) neighbor(share float64) {
	_, _, _, err := s.child(nil, busyWord, fmt.Sprint(share))
	s.must(err)
}

// others measures which share of the CPU others than a rig's own programs use.
type others struct {
	begin time.Time
	busy  time.Duration // of all programs
	own   time.Duration // of the servers
	pids  []int         // leaders of the servers' process groups
}

// watchOthers begins to measure. The servers are process groups.
func watchOthers(pids ...int) *others {
	return &others{time.Now(), busyTime(), groupTime(pids), pids}
}

// share ends the measurement: of the CPU time of all cores, what neither the servers nor a run with
// so much CPU time used. Time in interrupts is nobody's and is left out.
func (o *others) share(run time.Duration) float64 {
	all := busyTime() - o.busy
	own := groupTime(o.pids) - o.own + run
	return max(0, (all-own).Seconds()/time.Since(o.begin).Seconds()/float64(runtime.NumCPU()))
}

// tick is the unit of /proc.
const tick = 10 * time.Millisecond

// busyTime is the time that all cores spent in programs and for them.
func busyTime() time.Duration {
	b, _ := os.ReadFile("/proc/stat") // zero without it
	line, _, _ := bytes.Cut(b, []byte("\n"))
	fields := strings.Fields(string(line))
	var sum time.Duration
	for i := 1; i <= 3 && i < len(fields); i++ { // user, nice, system
		n, _ := strconv.Atoi(fields[i])
		sum += time.Duration(n) * tick
	}
	return sum
}

// groupTime is the CPU time of the processes of some groups.
func groupTime(groups []int) (sum time.Duration) {
	if len(groups) == 0 {
		return 0
	}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it is gone
		}
		fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // state, parent, group...
		for _, g := range groups {
			if len(fields) > 14 && fields[2] == strconv.Itoa(g) {
				for _, x := range fields[11:15] { // user, system, and those of children that ended
					n, _ := strconv.Atoi(x)
					sum += time.Duration(n) * tick
				}
			}
		}
	}
	return sum
}
