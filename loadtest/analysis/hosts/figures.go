package hosts

import (
	"strings"

	"weir/loadtest/analysis/basics"
	"weir/monitor"
)

// A HostFigure has the means of one host over the measurement time of one step.
type HostFigure struct {
	Host            string       `json:"host"`
	Role            monitor.Role `json:"role"`
	Cores           int          `json:"cores"`
	CPU             *float64     `json:"cpu_busy"` // share of all cores
	IOWait          *float64     `json:"iowait"`
	Steal           *float64     `json:"steal"`
	BusiestCore     *float64     `json:"busiest_core"` // mean of the busiest core's share
	ServerCores     *float64     `json:"server_cpu_cores"`
	ClientCores     *float64     `json:"client_cpu_cores"`
	ServerRSS       int64        `json:"server_resident_bytes"` // maximum
	ClientRSS       int64        `json:"client_resident_bytes"`
	MemoryAvailable int64        `json:"memory_available_bytes"` // minimum
	Disk            string       `json:"busiest_disk,omitempty"`
	DiskBusy        *float64     `json:"disk_busy"` // of the busiest disk
	DiskRead        float64      `json:"disk_read_bytes_per_second"`
	DiskWrite       float64      `json:"disk_write_bytes_per_second"`
	NetReceived     float64      `json:"net_received_bytes_per_second"` // the maximum of loopback and all others
	NetSent         float64      `json:"net_sent_bytes_per_second"`
	Retransmits     float64      `json:"retransmitted_segments_per_second"`
	CPUWaits        *float64     `json:"cpu_waits,omitempty"`       // share of time in which a runnable task waited for a core
	Quota           float64      `json:"cpu_quota_cores,omitempty"` // the clients' control groups'; 0: unset
	QuotaGroup      string       `json:"cpu_quota_group,omitempty"`
	// share of the scheduler's periods in which the clients' control group had used up its quota;
	// nil: no quota
	Throttled *float64 `json:"cpu_throttled_ratio,omitempty"`
	// share of all cores that unwatched processes used while nearly no core was idle
	Contended *float64 `json:"contended_cpu"`

	MostUsedCore  *float64 `json:"most_used_core"`         // largest mean of one core: unbiased, unlike BusiestCore
	DiskQueue     *float64 `json:"disk_queue"`             // of the busiest disk: mean requests waiting or in service
	DisksInUse    int      `json:"disks_in_use,omitempty"` // the busiest disk and disks that share its work; 0: one disk
	DisksBusy     *float64 `json:"disks_busy,omitempty"`   // mean of the disks in use
	DisksFull     int      `json:"disks_full,omitempty"`   // disks in use that are at least 90% busy
	Interface     string   `json:"busiest_interface,omitempty"`
	NetSpeed      float64  `json:"net_speed_bits_per_second,omitempty"`
	ReceivedShare *float64 `json:"net_received_share"` // of the busiest interface's speed; nil: unknown speed
	SentShare     *float64 `json:"net_sent_share"`
	Connections   float64  `json:"connections"` // established connections of the whole host
	ListenDrops   float64  `json:"listen_drops_per_second"`
	MemoryTotal   int64    `json:"memory_bytes"`
	Swapped       int64    `json:"swap_used_bytes"` // maximum
	ServerFiles   int      `json:"server_open_files"`
	ClientFiles   int      `json:"client_open_files"`

	Service *ServerFigure `json:"service,omitempty"` // from the reports of a server
	Link    *LinkFigure   `json:"link,omitempty"`    // counters of an emulated link
}

// A DiskFigure has the means of one disk of a host over the measurement time of a step.
type DiskFigure struct {
	Host  string   `json:"host"`
	Disk  string   `json:"disk"`
	Busy  *float64 `json:"disk_busy"`
	Read  float64  `json:"disk_read_bytes_per_second"`
	Write float64  `json:"disk_write_bytes_per_second"`
	Queue *float64 `json:"disk_queue"` // mean requests waiting or in service
	// IOWait is the share of the time of the host's cores in which they were idle and waited for a
	// disk.
	IOWait *float64 `json:"iowait"`
}

// A ServerFigure has the means of the reports of one server of the service over one step's
// measurement time.
type ServerFigure struct {
	Kind        string   `json:"kind"`                      // monitor.Redirector, DataServer or ClusterManager
	Cores       float64  `json:"cpu_cores"`                 // used by the server
	Share       *float64 `json:"cpu_share"`                 // of all reporting servers' CPU time
	Received    *float64 `json:"received_bytes_per_second"` // nil if counted at the end of connections
	Sent        *float64 `json:"sent_bytes_per_second"`
	Operations  *float64 `json:"operations_per_second"`
	Logins      float64  `json:"logins_per_second"`
	Refused     float64  `json:"refused_logins_per_second"`
	Redirects   float64  `json:"redirects_per_second"`
	Errors      float64  `json:"errors_per_second"`
	Connections float64  `json:"connections"`
	Threads     float64  `json:"threads"`
	Busy        float64  `json:"busy_threads"`
	Limited     float64  `json:"thread_limit_met_per_second"` // requests for a thread beyond the limit
	Queue       int      `json:"queue"`                       // maximum
	QueueMean   float64  `json:"queue_mean"`
	Waits       float64  `json:"waits_per_second"`
}

// A LinkFigure has the means of an emulated link over one step's measurement time, one entry for
// each direction.
type LinkFigure struct {
	ToClients   WayFigure `json:"to_clients"`
	FromClients WayFigure `json:"from_clients"`
	Over        []string  `json:"over,omitempty"` // links that lead over it, if it is a trunk
	Down        float64   `json:"down_share"`     // share of seconds that ended with the link down
	Cost        float64   `json:"emulation_cpu_cores"`
}

// A WayFigure describes one direction of a link.
type WayFigure struct {
	Carried float64  `json:"carried_bytes_per_second"` // IP headers included
	Rate    float64  `json:"rate_bits_per_second"`     // 0: unlimited
	Busy    *float64 `json:"busy"`                     // share of the time in which the wire was sending; nil: unlimited rate
	busy    Ranged
	Dropped float64 `json:"dropped_packets_per_second"`
	Lost    float64 `json:"lost_packets_per_second"`
	Cut     float64 `json:"cut_packets_per_second"`
	Wait    float64 `json:"wait_p99_seconds"` // mean of the seconds' 99th percentiles
	Late    float64 `json:"late_p99_seconds"` // the same, for delays caused by the emulation itself
	LateMax float64 `json:"late_max_seconds"`
}

// Share returns the share of the time in which the wire was sending.
func (w *WayFigure) Share() Ranged {
	if w.busy == (Ranged{}) {
		return Ranged{Mean: basics.Value(w.Busy)}
	}
	return w.busy
}

// What returns the name of the link in sentences.
func (f *LinkFigure) What() string {
	if len(f.Over) == 0 {
		return "link"
	}
	return "trunk of " + strings.Join(f.Over, ", ")
}
