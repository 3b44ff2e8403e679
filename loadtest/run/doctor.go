package run

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/link/emulator"
	"weir/loadtest/cluster"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
	"weir/monitor"
)

// A HostCheck is one property of this machine that a load generator depends on.
type HostCheck struct {
	Verdict string `json:"verdict"` // ok, warn
	What    string `json:"what"`
	Is      string `json:"is"`
	Advice  string `json:"advice,omitempty"`
}

func hostCheck(good bool, what, is, advice string) HostCheck {
	if good {
		return HostCheck{"ok", what, is, ""}
	}
	return HostCheck{"warn", what, is, advice}
}

// CheckHost checks whether this machine is fit to generate load.
func CheckHost(ctx context.Context) ([]HostCheck, error) {
	if _, _, err := monitor.RaiseOpenFiles(); err != nil {
		return nil, err
	}
	e, c := monitor.About(), results.ReadClock()
	ports := max(e.PortHigh-e.PortLow+1, 0)
	clients := int64(e.FilesSoft) - SpareFiles
	bytes := func(n int64) string { return unit.Bytes(float64(n)) }
	return []HostCheck{
		hostCheck(e.FilesSoft >= 10000, "open files", fmt.Sprintf("%d a process", e.FilesSoft),
			"raise the hard limit (ulimit -Hn, LimitNOFILE): until then runs of more clients use several processes"),
		hostCheck(clients > 0, "clients in one process", fmt.Sprintf("up to %d with one connection each", clients),
			"raise the limit of open files"),
		hostCheck(ports >= 20000, "ports", fmt.Sprintf("%d for connections to one address (%d to %d)", ports, e.PortLow, e.PortHigh),
			"widen net.ipv4.ip_local_port_range"),
		hostCheck(ports >= 20000 || e.PortReuse == "1", "fresh sessions", freshSessions(e.PortReuse, ports),
			"session: fresh at higher rates needs net.ipv4.tcp_tw_reuse=1, or more ports"),
		hostCheck(slices.Contains([]string{"tsc", "kvm-clock", "arch_sys_counter"}, e.ClockSource), "clock",
			fmt.Sprintf("%s, %s a reading", e.ClockSource, unit.Seconds(c.Read)),
			"a slow clock costs time at each operation: tsc is the fast one where the machine allows it"),
		checkCores(&e),
		hostCheck(e.Memory >= 2<<30, "memory", bytes(e.Memory), "10,000 clients take some 100 MB, their kernel buffers more"),
		hostCheck(e.ReceiveMemory[2] >= 16<<20, "TCP receive window", "up to "+bytes(e.ReceiveMemory[2]),
			"over long links one stream gets at most window / round-trip time: raise net.ipv4.tcp_rmem"),
		hostCheck(e.SendMemory[2] >= 4<<20, "TCP send buffer", "up to "+bytes(e.SendMemory[2]), "as above, for uploads: net.ipv4.tcp_wmem"),
		hostCheck(e.CongestionControl != "", "congestion control", e.CongestionControl+" (the sender's decides)", "could not be read"),
		hostCheck(e.Governor == "" || e.Governor == "performance", "CPU frequency", cmp.Or(e.Governor, "not governed by this system"),
			"use the performance governor while measuring"),
		hostCheck(true, "kernel", e.Kernel+" "+e.Virtualization, ""),
		checkToken(ctx),
		checkLinks(ctx),
	}, nil
}

// checkCores reports the number of cores that this process may use.
func checkCores(e *monitor.Environment) HostCheck {
	used, quota := fmt.Sprint(e.CoresUsed), QuotaText(e)
	if quota != "" {
		used, quota = fmt.Sprintf("%.3g", min(float64(e.CoresUsed), e.CPUQuota)), ": "+quota
	}
	is := fmt.Sprintf("%s used of %d (%s)%s", used, e.Cores, e.CPU, quota)
	return hostCheck(e.CoresUsed >= 2 && (e.CPUQuota == 0 || e.CPUQuota >= 2), "cores", is,
		"with fewer than two cores the generator disturbs what it measures on the same machine: raise the quota, or allow more cores")
}

// QuotaText describes the CPU quota of this process, "" if there is no quota below the number of
// cores.
func QuotaText(e *monitor.Environment) string {
	if e.CPUQuota <= 0 || e.CPUQuota >= float64(e.Cores) {
		return ""
	}
	return fmt.Sprintf("the CPU quota of control group %s allows %.3g of %d cores", e.CPUQuotaGroup, e.CPUQuota, e.Cores)
}

// WriteQuota writes the CPU quota of the clients of plans, if they run on this machine, and nothing
// if they have no quota.
func WriteQuota(w io.Writer, plans ...*scenario.Plan) error {
	e := monitor.About()
	text := QuotaText(&e)
	if text == "" || !slices.ContainsFunc(plans, func(p *scenario.Plan) bool { return !p.On.Batch.Elsewhere() }) {
		return nil
	}
	_, err := fmt.Fprintf(w, "\n%s to the clients and all else in it: the load generator may be the limit.\n", say.Capital(text))
	return err
}

// checkLinks finds out in which way links can be emulated on this machine.
func checkLinks(ctx context.Context) HostCheck {
	probe, err := cluster.SelfCommand("mover", "--probe")
	if err != nil {
		probe = nil
	}
	choice, err := emulator.Best(ctx, probe)
	if err != nil {
		return hostCheck(false, "emulated links", "not possible", err.Error())
	}
	return hostCheck(true, "emulated links", strings.TrimPrefix(choice.String(), "links are emulated "), "")
}

// freshSessions returns the rate of new connections that the ports allow for long: a
// port is blocked for 60 s after its connection was closed (TIME_WAIT).
func freshSessions(reuse string, ports int64) string {
	if reuse == "1" {
		return "ports are used again at once"
	}
	text := fmt.Sprintf("up to %d/s for long to one address of another machine: a port is blocked for 60 s", ports/60)
	if reuse == "0" {
		text += ", also on loopback"
	}
	return text
}
