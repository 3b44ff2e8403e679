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
	_, err = io.Copy(io.Discard, os.Stdin) // the program ends with its input
	return err
}

// neighbor starts a program that uses a share of every core.
func (s *stage) neighbor(share float64) {
	_, _, _, err := s.child(nil, busyWord, fmt.Sprint(share))
	s.must(err)
}

// others measures the shares of the CPU that programs other than a rig's own programs use.
type others struct {
	begin        time.Time
	busy, stolen time.Duration // by all programs; by other guests of the hypervisor
	own          time.Duration // by the servers
	pids         []int         // leaders of the servers' process groups
}

// watchOthers begins to measure. The servers are process groups.
func watchOthers(pids ...int) *others {
	o := &others{begin: time.Now(), own: groupTime(pids), pids: pids}
	o.busy, o.stolen = coreTime()
	return o
}

// shares ends the measurement. It returns two shares of the CPU time of all cores: the time that
// neither the servers nor the run used, which itself used the given CPU time, and the time that
// other guests of the hypervisor used. Time in interrupts belongs to no program and is left out.
func (o *others) shares(run time.Duration) (foreign, stolen float64) {
	busy, lost := coreTime()
	all := time.Since(o.begin).Seconds() * float64(runtime.NumCPU())
	own := groupTime(o.pids) - o.own + run
	return max(0, (busy-o.busy-own).Seconds()/all), (lost - o.stolen).Seconds() / all
}

// tick is the unit of /proc.
const tick = 10 * time.Millisecond

// coreTime returns the time that all cores spent in programs and for them, and the time that they
// waited for other guests.
func coreTime() (busy, stolen time.Duration) {
	b, _ := os.ReadFile("/proc/stat") // zero without it
	line, _, _ := bytes.Cut(b, []byte("\n"))
	for i, field := range strings.Fields(string(line)) {
		n, _ := strconv.Atoi(field)
		switch i {
		case 1, 2, 3: // user, nice, system
			busy += time.Duration(n) * tick
		case 8:
			stolen = time.Duration(n) * tick
		}
	}
	return busy, stolen
}

// groupTime returns the CPU time of the processes of several groups.
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
				for _, x := range fields[11:15] { // user and system, also of children that ended
					n, _ := strconv.Atoi(x)
					sum += time.Duration(n) * tick
				}
			}
		}
	}
	return sum
}
