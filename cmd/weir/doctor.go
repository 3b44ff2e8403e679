package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"weir/cluster"
	"weir/internal/unit"
	"weir/link"
	"weir/link/emulator"
	"weir/monitor"
	"weir/results"
	"weir/run"
)

func doctorCommand(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Is this machine fit to generate load?",
		Long: `Looks at what a load generator depends on (open files, ports, clock, cores,
memory, the kernel's TCP settings, what emulated links need) and says what each
allows and what to change.`,
		Example: `  weir doctor`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if _, _, err := monitor.RaiseOpenFiles(); err != nil {
				return err
			}
			found := append(examine(monitor.About(), results.ReadClock()), linkFinding(c.Context()))
			if asJSON {
				return writeJSON(s.out, map[string]any{"checks": found})
			}
			w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
			for _, f := range found {
				if _, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.Verdict, f.What, f.Is, f.Advice); err != nil {
					return err
				}
			}
			return w.Flush()
		},
	}
	jsonFlag(c, &asJSON, "print what it looked at as JSON")
	return c
}

// A finding is one thing that the doctor looked at.
type finding struct {
	Verdict string `json:"verdict"` // ok, warn
	What    string `json:"what"`
	Is      string `json:"is"`
	Advice  string `json:"advice,omitempty"`
}

func looked(good bool, what, is, advice string) finding {
	if good {
		return finding{"ok", what, is, ""}
	}
	return finding{"warn", what, is, advice}
}

func examine(e monitor.Environment, c results.Clock) []finding {
	ports := max(e.PortHigh-e.PortLow+1, 0)
	clients := int64(e.FilesSoft) - run.SpareFiles
	return []finding{
		looked(e.FilesSoft >= 10000, "open files", fmt.Sprintf("%d a process", e.FilesSoft),
			"raise the hard limit (ulimit -Hn, LimitNOFILE): until then runs of more clients use several processes"),
		looked(clients > 0, "clients in one process", fmt.Sprintf("up to %d with one connection each", clients), "raise the limit of open files"),
		looked(ports >= 20000, "ports", fmt.Sprintf("%d for connections to one address (%d to %d)", ports, e.PortLow, e.PortHigh),
			"widen net.ipv4.ip_local_port_range"),
		looked(ports >= 20000 || e.PortReuse == "1", "fresh sessions", freshText(e.PortReuse, ports),
			"session: fresh at more needs net.ipv4.tcp_tw_reuse=1, or more ports"),
		looked(e.ClockSource == "tsc" || e.ClockSource == "kvm-clock" || e.ClockSource == "arch_sys_counter", "clock", fmt.Sprintf("%s, %s a look", e.ClockSource, unit.Seconds(c.Read)),
			"a slow clock costs at each operation: tsc is the fast one where the machine allows it"),
		looked(e.CoresUsed >= 2, "cores", fmt.Sprintf("%d used of %d (%s)", e.CoresUsed, e.Cores, e.CPU), "with one core the generator disturbs what it measures on the same machine"),
		looked(e.Memory >= 2<<30, "memory", unit.Bytes(float64(e.Memory)), "10,000 clients take some 100 MB, their kernel buffers more"),
		looked(e.ReceiveMemory[2] >= 16<<20, "TCP receive window", "up to "+unit.Bytes(float64(e.ReceiveMemory[2])),
			"over long links one stream gets at most window / round-trip time: raise net.ipv4.tcp_rmem"),
		looked(e.SendMemory[2] >= 4<<20, "TCP send buffer", "up to "+unit.Bytes(float64(e.SendMemory[2])), "as above, for uploads: net.ipv4.tcp_wmem"),
		looked(e.CongestionControl != "", "congestion control", e.CongestionControl+" (the sender's decides)", "could not be read"),
		looked(e.Governor == "" || e.Governor == "performance", "CPU frequency", orUnknown(e.Governor), "use the performance governor while measuring"),
		looked(true, "kernel", e.Kernel+" "+e.Virtualization, ""),
	}
}

// linkFinding tries which way of emulated links is possible here.
func linkFinding(ctx context.Context) finding {
	probe, err := cluster.SelfCommand("mover", "--probe")
	if err != nil {
		probe = nil
	}
	far := []link.Named{{Spec: link.Spec{Rate: 1e6, RTT: unit.Duration(time.Millisecond)}}}
	choice := emulator.Best(ctx, far, probe)
	how := emulator.Choice{Way: choice.Way, Isolated: choice.Isolated}
	return looked(choice.Way != emulator.Proxy, "emulated links", strings.TrimPrefix(how.String(), "links are emulated "),
		strings.Join(choice.Why, "; ")+": run as root, or allow users to make namespaces and open /dev/net/tun (docs/links.md)")
}

// freshText says how many new connections a second the ports allow for long:
// a port rests for 60 s after its connection was closed (TIME_WAIT).
func freshText(reuse string, ports int64) string {
	if reuse == "1" {
		return "ports are used again at once"
	}
	text := fmt.Sprintf("up to %d/s for long to one address of another machine: a port rests for 60 s", ports/60)
	if reuse == "0" {
		text += ", also on loopback"
	}
	return text
}

func orUnknown(s string) string {
	if s == "" {
		return "not governed by this system"
	}
	return s
}
