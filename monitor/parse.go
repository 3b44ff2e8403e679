package monitor

import (
	"bytes"
	"fmt"
	"math"
)

// tick is the unit of CPU time in /proc, in seconds: USER_HZ is 100 on all architectures that Go has for Linux.
const tick = 0.01

// parseCPU reads /proc/stat into c.cores. Times as guest are part of user time already.
func parseCPU(b []byte, c *counters) error {
	for line := range bytes.SplitSeq(b, []byte{'\n'}) {
		name, rest := cutField(line)
		if len(name) <= 3 || string(name[:3]) != "cpu" {
			if len(c.cores) > 0 {
				break // the cores stand together; the long line of interrupts follows
			}
			continue
		}
		id, ok := number(name[3:])
		if !ok || id > 1<<20 {
			return fmt.Errorf("core number in %q", clip(line))
		}
		var user, nice, system, idle, iowait, irq, softirq, steal int64
		if n := numbers(rest, &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal); n < 4 {
			return fmt.Errorf("times of a core in %q", clip(line))
		}
		c.cores = append(c.cores, coreTime{id: int(id), mode: CPU{
			User: float64(user)*tick + float64(nice)*tick, System: float64(system) * tick,
			IRQ: float64(irq)*tick + float64(softirq)*tick, IOWait: float64(iowait) * tick,
			Steal: float64(steal) * tick, Idle: float64(idle) * tick,
		}})
	}
	if len(c.cores) == 0 {
		return fmt.Errorf("no core in it")
	}
	return nil
}

// parsePressure reads /proc/pressure/cpu, whose first line contains the microseconds in which a
// task waited for a core: "some avg10=0.12 avg60=0.05 avg300=0.01 total=123".
func parsePressure(b []byte, c *counters) error {
	line, _ := cutLine(b)
	_, total, found := bytes.Cut(line, []byte("total="))
	n, ok := number(total)
	if !found || !ok || !bytes.HasPrefix(line, []byte("some ")) {
		return fmt.Errorf("no total of some in %q", clip(line))
	}
	c.waits, c.hasWaits = float64(n)/1e6, true
	return nil
}

// parseLoad reads /proc/loadavg, whose first word has two decimals.
func parseLoad(b []byte, c *counters) error {
	field, _ := cutField(b)
	whole, part, found := bytes.Cut(field, []byte{'.'})
	n, ok := number(whole)
	cents, ok2 := number(part)
	if !found || !ok || !ok2 || len(part) != 2 {
		return fmt.Errorf("load in %q", clip(b))
	}
	c.load = float64(n) + float64(cents)/100
	return nil
}

// parseMemory reads /proc/meminfo.
func parseMemory(b []byte, c *counters) error {
	var total, available, swap, unused int64
	fields := [...]struct {
		name string
		to   *int64
	}{{"MemTotal:", &total}, {"MemAvailable:", &available}, {"SwapTotal:", &swap}, {"SwapFree:", &unused}}
	for found := 0; len(b) > 0 && found < len(fields); {
		var line []byte
		line, b = cutLine(b)
		name, rest := cutField(line)
		for _, f := range fields {
			if string(name) != f.name {
				continue
			}
			kib, _, ok := cutNumber(rest)
			if !ok || kib > 1<<50 {
				return fmt.Errorf("size in %q", clip(line))
			}
			*f.to = kib << 10
			found++
		}
	}
	if total == 0 {
		return fmt.Errorf("no MemTotal in it")
	}
	c.memory = Memory{Total: total, Available: available, Swapped: max(0, swap-unused)}
	c.hasMemory = true
	return nil
}

// parseDisks reads /proc/diskstats. names keeps one copy of each name.
func parseDisks(b []byte, c *counters, names *interned) error {
	const sector = 512 // regardless of the device's own block size
	for line := range bytes.SplitSeq(b, []byte{'\n'}) {
		name, rest := cutField(skipFields(line, 2))
		if len(name) == 0 {
			continue
		}
		var reads, writes, rsect, wsect, busy, queue, skip int64
		n := numbers(rest, &reads, &skip, &rsect, &skip, &writes, &skip, &wsect, &skip, &skip, &busy, &queue)
		if n < 11 || rsect > 1<<53 || wsect > 1<<53 {
			return fmt.Errorf("counters of a disk in %q", clip(line))
		}
		c.disks = append(c.disks, diskCount{
			name: names.of(name), read: rsect * sector, write: wsect * sector, ops: reads + writes,
			busy: float64(busy) / 1000, queue: float64(queue) / 1000,
		})
	}
	c.disks = realDisks(c.disks)
	return nil
}

// parseNets reads /proc/net/dev.
func parseNets(b []byte, c *counters, names *interned) error {
	for line := range bytes.SplitSeq(b, []byte{'\n'}) {
		i := bytes.LastIndexByte(line, ':') // an alias may have a colon in its name
		if i < 0 {
			continue // the two lines of heading
		}
		name, _ := cutField(line[:i])
		var n netCount
		var dropIn, fifoIn, dropOut, fifoOut, skip int64
		if numbers(line[i+1:], &n.received, &n.packetsIn, &skip, &dropIn, &fifoIn, &skip, &skip, &skip,
			&n.sent, &n.packetsOut, &skip, &dropOut, &fifoOut) < 13 || len(name) == 0 {
			return fmt.Errorf("counters of an interface in %q", clip(line))
		}
		if emulated(name) {
			continue
		}
		n.name, n.drops = names.of(name), dropIn+fifoIn+dropOut+fifoOut
		c.nets = append(c.nets, n)
	}
	return nil
}

// emulated reports whether an interface, weir0 or weir1 and so on, is the end of an emulated link:
// emulated links have samples of their own.
func emulated(name []byte) bool {
	of, ours := bytes.CutPrefix(name, []byte("weir"))
	_, numbered := number(of)
	return ours && numbered
}

// parseTable reads one counter from /proc/net/snmp or /proc/net/netstat, which have a line of names
// above a line of numbers.
func parseTable(b []byte, group, name string) (int64, error) {
	for len(b) > 0 {
		var names, line []byte
		names, b = cutLine(b)
		first, names := cutField(names)
		if string(first) != group {
			continue
		}
		line, _ = cutLine(b)
		if first, line = cutField(line); string(first) != group {
			return 0, fmt.Errorf("%s has names without numbers", group)
		}
		return valueUnder(names, line, name)
	}
	return 0, fmt.Errorf("no line %s", group)
}

func valueUnder(names, values []byte, name string) (int64, error) {
	for {
		var n, v []byte
		n, names = cutField(names)
		v, values = cutField(values)
		if len(n) == 0 {
			return 0, fmt.Errorf("no counter %s", name)
		}
		if string(n) == name {
			value, ok := number(v)
			if !ok {
				return 0, fmt.Errorf("%s is %q, no number", name, clip(v))
			}
			return value, nil
		}
	}
}

// clip shortens a quotation for an error.
func clip(b []byte) []byte {
	line, _ := cutLine(b)
	return line[:min(len(line), 60)]
}

// interned keeps one string for each name that is read again and again.
type interned struct{ known map[string]string }

func (n *interned) of(b []byte) string {
	if s, ok := n.known[string(b)]; ok {
		return s
	}
	if n.known == nil || len(n.known) > 10_000 {
		n.known = map[string]string{}
	}
	s := string(b)
	n.known[s] = s
	return s
}

// cutLine returns the first line of b without its end, and the rest.
func cutLine(b []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(b, []byte{'\n'})
	return line, rest
}

// cutField returns the first word of a line and the rest.
func cutField(line []byte) (field, rest []byte) {
	i := 0
	for i < len(line) && isSpace(line[i]) {
		i++
	}
	j := i
	for j < len(line) && !isSpace(line[j]) {
		j++
	}
	return line[i:j], line[j:]
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// skipFields returns the rest of a line after the first n words.
func skipFields(line []byte, n int) []byte {
	for range n {
		_, line = cutField(line)
	}
	return line
}

// cutNumber returns the first word of a line as a number; ok reports whether it is a whole number from 0 to the largest
// int64.
func cutNumber(line []byte) (n int64, rest []byte, ok bool) {
	field, rest := cutField(line)
	n, ok = number(field)
	return n, rest, ok
}

// number reads a whole number without sign. Counters beyond int64, which no machine reaches honestly, are refused.
func number(field []byte) (int64, bool) {
	if len(field) == 0 {
		return 0, false
	}
	var n int64
	for _, c := range field {
		if c < '0' || c > '9' || n > (math.MaxInt64-9)/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// numbers reads as many numbers as there are places for them and returns their number.
func numbers(line []byte, to ...*int64) int {
	for i, p := range to {
		n, rest, ok := cutNumber(line)
		if !ok {
			return i
		}
		*p, line = n, rest
	}
	return len(to)
}
