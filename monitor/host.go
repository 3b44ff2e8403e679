package monitor

import (
	"fmt"
	"strings"
)

// A Role is what a host or a group of processes is in a run.
type Role string

// Roles. Processes are never RoleBoth.
const (
	RoleClient Role = "client" // makes the load
	RoleServer Role = "server" // serves it
	RoleBoth   Role = "both"   // does both
	RoleOther  Role = "other"  // neither
)

// A Host is a machine that is watched while the run goes on.
type Host struct {
	Name string `json:"name"                    yaml:"name"`
	Role Role   `json:"role"                    yaml:"role"`
	// URL of a Prometheus page; empty means this machine's /proc
	NodeExporter string `json:"node_exporter,omitempty" yaml:"node_exporter,omitempty"`
	// [HOST]:PORT here to which XRootD servers send what xrd.report makes
	XRootDReport string   `json:"xrootd_report,omitempty" yaml:"xrootd_report,omitempty"`
	Processes    []string `json:"processes,omitempty"     yaml:"processes,omitempty"` // names of the service's programs
	Pids         []int    `json:"pids,omitempty"          yaml:"pids,omitempty"`
	Groups       []int    `json:"groups,omitempty"        yaml:"groups,omitempty"` // process groups

	// HOST or HOST:PORT at which clients get data from this backend
	Address []string `json:"address,omitempty"      yaml:"address,omitempty"`
	// whose counters are the backend's: of NodeExporter, or of this machine
	Interface string `json:"interface,omitempty"    yaml:"interface,omitempty"`
	// file here to which a GridFTP server writes a line for each transfer
	TransferLog string `json:"transfer_log,omitempty" yaml:"transfer_log,omitempty"`
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

// A BalancerConfig names the statistics of the balancer that spreads clients over several servers. Its zero value is for
// a service without a balancer, or with one that is not monitored.
type BalancerConfig struct {
	HAProxy string `json:"haproxy,omitempty" yaml:"haproxy"` // path or HOST:PORT of its statistics socket, or URL of its statistics page
	IPVS    string `json:"ipvs,omitempty"    yaml:"ipvs"`    // LocalIPVS, or the URL of a node_exporter's page
	Service string `json:"service,omitempty" yaml:"service"` // HAProxy's name of the backend section, or ADDRESS:PORT of IPVS; "": all of them
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
