package monitor

import (
	"fmt"
	"strings"
)

// A Role is the role of a host or a group of processes in a run.
type Role string

// Roles. Processes are never RoleBoth.
const (
	RoleClient Role = "client" // makes the load
	RoleServer Role = "server" // serves it
	RoleBoth   Role = "both"   // client and server
	RoleOther  Role = "other"  // neither
)

// A Host is a machine that is watched during the run.
type Host struct {
	Name         string   `json:"name" doc:"Name of the host."`
	Role         Role     `json:"role" enum:"client,server,both,other" doc:"Role of the host in the test."`
	NodeExporter string   `json:"node_exporter,omitempty" doc:"URL of its Prometheus page. Default: this machine's /proc."`
	XRootDReport string   `json:"xrootd_report,omitempty" doc:"UDP port of this machine for xrd.report of XRootD servers, as in :9931."`
	Processes    []string `json:"processes,omitempty" doc:"Names of programs whose CPU and memory are monitored."`
	Pids         []int    `json:"pids,omitempty" doc:"Process ids to monitor."`
	Groups       []int    `json:"groups,omitempty" doc:"Process groups to monitor."`
	Address      []string `json:"address,omitempty" doc:"Backend: HOST or HOST:PORT of its data. Default: its name."`
	Interface    string   `json:"interface,omitempty" doc:"Backend: interface with all of its traffic, on its page or on this machine."`
	TransferLog  string   `json:"transfer_log,omitempty" doc:"Backend: local file to which its GridFTP server logs transfers."`
}

// Backend reports whether the host is one of several servers that share the load.
func (h *Host) Backend() bool { return len(h.Address) > 0 || h.Interface != "" || h.TransferLog != "" }

// Describe returns the host's name and role, and the source of its figures.
func (h *Host) Describe() string {
	from := "this machine's /proc"
	switch {
	case h.NodeExporter != "":
		from = h.NodeExporter
		if h.TransferLog != "" {
			from += " and " + h.TransferLog
		}
	case h.XRootDReport != "":
		from = "reports to " + h.XRootDReport
	case h.Backend():
		from = h.sources()
	}
	return fmt.Sprintf("%s (%s), from %s", h.Name, h.Role, from)
}

// sources names the sources of the figures of a backend without a page.
func (h *Host) sources() string {
	var all []string
	if h.Interface != "" {
		all = append(all, "this machine's interface "+h.Interface)
	}
	if len(h.Processes)+len(h.Pids)+len(h.Groups) > 0 {
		all = append(all, "this machine's /proc")
	}
	if h.TransferLog != "" {
		all = append(all, h.TransferLog)
	}
	if len(all) == 0 {
		return "what clients see of it"
	}
	return strings.Join(all, ", ")
}

// A BalancerConfig names the statistics of the balancer that spreads clients over several servers.
// Its zero value means a service without a balancer, or with a balancer that is not monitored.
type BalancerConfig struct {
	HAProxy string `json:"haproxy,omitempty" doc:"HAProxy's statistics: path or HOST:PORT of its socket, or URL of its page."`
	IPVS    string `json:"ipvs,omitempty" doc:"IPVS (LVS): local for this machine, or the URL of a page of node_exporter."`
	Service string `json:"service,omitempty" doc:"One service of several: backend of HAProxy, or ADDRESS:PORT of IPVS."`
}

// LocalIPVS is the value of BalancerConfig.IPVS for this machine's own kernel.
const LocalIPVS = "local"

// String returns the source of the balancer's figures.
func (b BalancerConfig) String() string {
	text := "HAProxy, from " + b.HAProxy
	if b.HAProxy == "" {
		text = map[bool]string{true: "IPVS of this machine", false: "IPVS, from " + b.IPVS}[b.IPVS == LocalIPVS]
	}
	if b.Service != "" {
		text += ", service " + b.Service
	}
	return text
}
