package monitor

import (
	"strings"
	"time"

	"weir/link"
)

// A Sample has the measurements of one host, or of some processes of it, between two looks, usually
// over one second. Rates are per second of Seconds; shares are fractions, 0 to 1. Fields that a
// probe cannot measure stay absent.
type Sample struct {
	Time    time.Time `json:"time"`             // end of the span
	Seconds float64   `json:"duration_seconds"` // length of the span
	Host    string    `json:"host"`
	Role    Role      `json:"role"`
	Step    int       `json:"step,omitempty"`

	Cores int       `json:"cores,omitempty"`
	CPU   *CPU      `json:"cpu,omitempty"`       // of all cores together
	Core  []float64 `json:"core_busy,omitempty"` // busy share of each core
	// share of time in which something that could run waited for a core (pressure stall information); nil: unknown
	Waits  *float64 `json:"cpu_waits,omitempty"`
	Quota  *Quota   `json:"cpu_quota,omitempty"` // of the control groups of this process; nil for other hosts and without a quota
	Load   float64  `json:"load1,omitempty"`
	Memory *Memory  `json:"memory,omitempty"`
	Disks  []Disk   `json:"disks,omitempty"`
	// block device with the jobs' copies of files, such as vda1, a partition of the disk vda; empty
	// if unknown
	Scratch string `json:"scratch_device,omitempty"`
	Nets    []Net  `json:"nets,omitempty"`
	TCP     *TCP   `json:"tcp,omitempty"`
	Procs   []Proc `json:"processes,omitempty"` // named processes, one entry a group of them

	// CPU seconds of the span that programs used which are in no group. Programs that began and ended between two
	// looks are not in it.
	Others float64 `json:"others_cpu_seconds,omitempty"`
	// CPU seconds of the span used by threads of the kernel: for encrypted and mirrored disks, NFS
	// servers and loop devices.
	Kernel float64 `json:"kernel_threads_cpu_seconds,omitempty"`

	Service *Service `json:"service,omitempty"` // the server's own statistics; Host is its host:port then
	Link    *Link    `json:"link,omitempty"`    // statistics of an emulated link; Host is its name then

	Balancer  *Balancer  `json:"balancer,omitempty"`  // a balancer's statistics on the servers behind it
	Transfers *Transfers `json:"transfers,omitempty"` // transfers from a backend's own log

	// Fields that are absent because a counter fell, rose by more than is plausible, or was not a
	// number: "interface eth0", "disk sda", "CPU".
	LeftOut []string `json:"left_out,omitempty"`

	Cost  float64 `json:"cost_cpu_seconds"` // CPU time that taking the sample took
	Error string  `json:"error,omitempty"`  // why this sample is not whole
}

// CPU is the share of time that all cores together spent in each mode.
type CPU struct {
	User   float64 `json:"user"`
	System float64 `json:"system"`
	IRQ    float64 `json:"irq"` // hard and soft interrupts
	IOWait float64 `json:"iowait"`
	Steal  float64 `json:"steal"`
	Idle   float64 `json:"idle"`
}

// Busy returns the share of time in which cores were busy, for this machine or for other guests of
// the hypervisor.
func (c *CPU) Busy() float64 { return c.User + c.System + c.IRQ + c.Steal }

// Memory has sizes in bytes.
type Memory struct {
	Total     int64 `json:"total_bytes"`
	Available int64 `json:"available_bytes"`
	Swapped   int64 `json:"swap_used_bytes"`
}

// A Disk is one block device.
type Disk struct {
	Name  string  `json:"name"`
	Read  float64 `json:"read_bytes_per_second"`
	Write float64 `json:"write_bytes_per_second"`
	Ops   float64 `json:"operations_per_second"`
	Queue float64 `json:"queue"` // mean requests waiting or in service
	Busy  float64 `json:"busy"`  // share of time with a request in service
}

// Repeats reports whether a disk below the device repeats its traffic: the device is a loop device,
// whose file lies on that disk. Sums leave it out.
func (d *Disk) Repeats() bool { return isLoop(d.Name) }

// A Net is one network interface. Bytes and packets are of the span, not per second.
type Net struct {
	Name       string  `json:"name"`
	Received   int64   `json:"received_bytes"`
	Sent       int64   `json:"sent_bytes"`
	PacketsIn  int64   `json:"received_packets"`
	PacketsOut int64   `json:"sent_packets"`
	Drops      int64   `json:"drops"`
	Speed      float64 `json:"speed_bits_per_second,omitempty"` // as reported by the driver; 0 means unknown
}

// TCP counts of the whole host in the span.
type TCP struct {
	Retransmits int64 `json:"retransmitted_segments"`
	Established int64 `json:"established"` // connections now
	ListenDrops int64 `json:"listen_drops"`
}

// A Proc is a group of processes that are watched together: the service's, or the load generator's own.
type Proc struct {
	Name    string  `json:"name"`
	Role    Role    `json:"role"`
	Count   int     `json:"processes"`
	Threads int     `json:"threads"`
	User    float64 `json:"user_cpu_seconds"`   // of the span
	System  float64 `json:"system_cpu_seconds"` // of the span
	RSS     int64   `json:"resident_bytes"`
	Files   int     `json:"open_files,omitempty"`

	// Of the service's processes only. Of a process with many threads the busiest are read, and the others in turn.
	MeasuredThreads  int     `json:"measured_threads,omitempty"`              // with a known CPU time in the span; may be 0
	BusiestThread    float64 `json:"busiest_thread_cpu_seconds,omitempty"`    // of the span: CPU time of the busiest of these
	UnmeasuredThread float64 `json:"unmeasured_thread_cpu_seconds,omitempty"` // upper bound for any other thread
	AllowedCores     int     `json:"allowed_cores,omitempty"`                 // cores on which they may run, by affinity; 0: not known

	Read     int64 `json:"read_bytes"`           // by read-like system calls, files and sockets, in the span
	Written  int64 `json:"written_bytes"`        // by write-like system calls (sendfile among them), in the span
	Sent     int64 `json:"sent_bytes,omitempty"` // payload sent, as the service itself counts it
	Received int64 `json:"received_bytes,omitempty"`
}

// A Service has the statistics of one server of the service: XRootD's own statistics. Counts and
// bytes are of the span.
type Service struct {
	Name    string  `json:"name"`    // host:port, as the server calls itself
	Program string  `json:"program"` // xrootd, cmsd
	Version string  `json:"version"`
	Kind    string  `json:"kind"` // Redirector, DataServer or ClusterManager
	Pid     int     `json:"pid"`
	Late    bool    `json:"late,omitempty"` // bytes, reads and writes are counted only when their connection ends
	User    float64 `json:"user_cpu_seconds"`
	System  float64 `json:"system_cpu_seconds"`

	Threads     int   `json:"threads"`
	Idle        int   `json:"idle_threads"`
	Limited     int64 `json:"thread_limit_met"` // times that another thread was needed but not allowed
	Queue       int   `json:"queue"`            // jobs that wait for a thread now
	Connections int   `json:"connections"`      // now
	Connected   int64 `json:"connected"`        // connections that were made
	Received    int64 `json:"received_bytes"`
	Sent        int64 `json:"sent_bytes"`

	Logins    int64            `json:"logins"`         // tried
	Proven    int64            `json:"proven_logins"`  // of clients that proved who they are
	Refused   int64            `json:"refused_logins"` // authentications that failed
	Redirects int64            `json:"redirects"`
	Errors    int64            `json:"errors"`
	Waits     int64            `json:"waits"`                   // responses that make the client wait
	Async     int64            `json:"async_operations"`        // of the file system
	Segments  int64            `json:"vector_segments"`         // in vector reads and writes
	Ops       map[string]int64 `json:"operations_by,omitempty"` // requests by kind; only kinds with requests
}

// Kinds of servers.
const (
	Redirector     = "redirector"
	DataServer     = "data server"
	ClusterManager = "cluster manager" // cmsd, which sends the locations of files to the redirector
)

// Operations returns the number of requests of all kinds.
func (s *Service) Operations() int64 {
	sum := int64(0)
	for _, n := range s.Ops {
		sum += n
	}
	return sum
}

// A Link has the statistics of an emulated link in the span. The bytes to the clients are the sent
// bytes of the interface "to clients" of its sample, and the bytes from them are the received bytes
// of "from clients".
type Link struct {
	Down        bool         `json:"down,omitempty"` // at the end of the span
	ToClients   link.Traffic `json:"to_clients"`
	FromClients link.Traffic `json:"from_clients"`
	Cost        float64      `json:"emulation_cpu_seconds"` // CPU time that the emulation took; 0 if the kernel runs the service
}

// LinkHost returns the host of the samples of an emulated link.
func LinkHost(name string) string { return strings.TrimSpace("link " + name) }

// Interfaces of a link's sample.
const (
	ToClients   = "to clients"
	FromClients = "from clients"
)
