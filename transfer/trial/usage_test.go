package trial

import (
	"math"
	"os"
	"testing"
	"time"
)

// CPU time is added up over a restart, whose process begins at 0; the largest usage is the usage
// within half a second.
func TestUsageOfLooks(t *testing.T) {
	t.Parallel()
	begin := time.Unix(0, 0)
	at := func(tenths int, pid int, cpu float64, size int64) look {
		return look{begin.Add(time.Duration(tenths) * usageEvery), pid, cpu, size}
	}
	seen := []look{at(0, 1, 5, 10), at(1, 1, 5, 30), at(2, 1, 5, 20), at(3, 1, 5, 20), at(4, 1, 5, 20), at(5, 1, 5, 20), at(6, 1, 5.1, 20),
		at(7, 1, 5.5, 20), at(20, 2, 0.2, 40), at(21, 2, 0.3, 20)}
	u := usageOf(seen)
	if math.Abs(u.Seconds-0.8) > 1e-9 || u.Memory != 40 || math.Abs(u.CPU-1) > 1e-9 {
		t.Errorf("%+v", u)
	}
	if u := usageOf(seen[5:8]); math.Abs(u.CPU-2.5) > 1e-9 || math.Abs(u.Seconds-0.5) > 1e-9 {
		t.Errorf("less than half a second: %+v", u)
	}
	if u := usageOf(nil); u != (Usage{}) {
		t.Errorf("%+v", u)
	}
}

// The usage of this process is plausible: it has more than 1 MiB of memory, no more than this machine,
// and its CPU time grows.
func TestProcessUsage(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip(err)
	}
	for sum := 0.0; ; sum++ {
		cpu, size, err := processUsage(os.Getpid())
		if err != nil || size < 1<<20 || size > memoryTotal() {
			t.Fatal(cpu, size, err)
		}
		if cpu > 0 { // it has worked for a tick
			break
		}
	}
	if _, _, err := processUsage(1 << 30); err == nil {
		t.Error("a process that is not there")
	}
}

// Links and several destinations that cannot be played are refused.
func TestRefusedCases(t *testing.T) {
	t.Parallel()
	const begin = "name: x\nsites: [A, B, C]\ncases:\n  - {name: a, files: 4, size: 1MB, at: {A: all}, expect: {status: completed}, "
	for _, text := range []string{
		"to: []}", "to: [C, C]}", "to: D}", "to: [B, C], requests: 3, spread: true}", "to: C, requests: 4, open: 1, every: 1s}",
		"to: C, events: [{after: 1, rename: D}]}", "to: C, events: [{after: 1, rename: A, off: A}]}", "to: C}\nlink: {D: {rate: 1Mbit/s}}",
		"to: C}\nlink: {A: {rate: 1Mbit/s}, C: {rtt: 1ms}}", "to: C}\nlink: {A: {loss: 90%}}", "to: C}\nlink: {A: {speed: 1}}",
	} {
		if _, err := Parse([]byte(begin + text)); err == nil {
			t.Errorf("%s: it is accepted", text)
		}
	}
	s, err := Parse([]byte(begin + "to: [B, C]}\nlink: {A: {rate: 1Mbit/s, rtt: 20ms}}"))
	if err != nil || s.Cases[0].Expect.Arrived.First != 8 || len(s.Named()) != 1 || s.Named()[0].Spec.RTT.String() != "20ms" {
		t.Errorf("%+v, %v", s, err)
	}
}
