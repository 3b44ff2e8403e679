package monitor

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// An Environment has the properties of this machine, besides the load, on which a result depends.
// It includes the machine's settings. A field that cannot be determined stays empty.
type Environment struct {
	Time         time.Time `json:"time"`
	Host         string    `json:"hostname"`
	Kernel       string    `json:"kernel"`
	System       string    `json:"operating_system"`
	Architecture string    `json:"architecture"`
	CPU          string    `json:"cpu_model"`
	Cores        int       `json:"cores"`
	CoresAllowed int       `json:"cores_allowed"` // by affinity
	CoresUsed    int       `json:"cores_used"`    // GOMAXPROCS: allowed, and the control group's quota, but at least two if there are
	// smallest quota of the control groups of this process, and the group with that quota; 0: no
	// quota
	CPUQuota          float64  `json:"cpu_quota_cores,omitempty"`
	CPUQuotaGroup     string   `json:"cpu_quota_group,omitempty"`
	Memory            int64    `json:"memory_bytes"`
	Virtualization    string   `json:"virtualization"` // hypervisor, container, or "" if neither is detected
	ClockSource       string   `json:"clock_source"`
	Governor          string   `json:"cpu_governor,omitempty"`
	CongestionControl string   `json:"tcp_congestion_control"`
	ReceiveMemory     [3]int64 `json:"tcp_rmem_bytes"` // least, at start, most
	SendMemory        [3]int64 `json:"tcp_wmem_bytes"`
	ReceiveMost       int64    `json:"rmem_max_bytes"` // upper limit for a program's setting
	SendMost          int64    `json:"wmem_max_bytes"`
	Backlog           int64    `json:"somaxconn"`
	PortLow           int64    `json:"ephemeral_port_low"`
	PortHigh          int64    `json:"ephemeral_port_high"`
	// ports of connections that were just closed: "0" rest for a minute, "1" are used again, "2" on loopback only
	PortReuse string    `json:"tcp_tw_reuse,omitempty"`
	FilesSoft uint64    `json:"open_files_soft"`
	FilesHard uint64    `json:"open_files_hard"`
	Go        string    `json:"go_version"`
	Boot      time.Time `json:"boot_time"`
	Start     time.Time `json:"process_start_time"`
}

// About returns the environment of this process now. It takes a few milliseconds.
func About() Environment { return about(newProcFS("", "")) }

func about(f *procFS) Environment {
	e := Environment{
		Time: time.Now().Round(0), Architecture: runtime.GOARCH, Go: runtime.Version(),
		CoresAllowed: runtime.NumCPU(), CoresUsed: runtime.GOMAXPROCS(0),
	}
	e.Host, _ = os.Hostname()
	e.Kernel = f.word(f.proc + "/sys/kernel/osrelease")
	e.System = systemName("/etc/os-release")
	e.ClockSource = f.word(f.sys + "/devices/system/clocksource/clocksource0/current_clocksource")
	e.Governor = f.word(f.sys + "/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	e.setCPU(f)
	if q := quota(f, cpuGroups(f)); q != nil {
		e.CPUQuota, e.CPUQuotaGroup = q.Cores, q.Group
	}
	e.setNetwork(f)
	e.FilesSoft, e.FilesHard, _ = openFiles()
	return e
}

func (e *Environment) setCPU(f *procFS) {
	var c counters
	if b, err := f.readOnce(f.proc + "/stat"); err == nil && parseCPU(b, &c) == nil {
		e.Cores = len(c.cores)
	}
	if b, err := f.readOnce(f.proc + "/meminfo"); err == nil && parseMemory(b, &c) == nil {
		e.Memory = c.memory.Total
	}
	hypervisor := false
	if b, err := f.readOnce(f.proc + "/cpuinfo"); err == nil {
		e.CPU, hypervisor = parseCPUInfo(b)
	}
	if b, err := f.readOnce(f.proc + "/stat"); err == nil {
		if at := parseBoot(b); at > 0 {
			e.Boot = time.Unix(at, 0)
		}
	}
	if s, err := f.stat(os.Getpid()); err == nil && f.real() && !e.Boot.IsZero() {
		e.Start = e.Boot.Add(time.Duration(s.start) * 10 * time.Millisecond)
	}
	e.Virtualization = virtualization(f, hypervisor)
}

// parseCPUInfo reads the first core's model from /proc/cpuinfo, and whether a hypervisor is under it.
func parseCPUInfo(b []byte) (cpu string, hypervisor bool) {
	for line := range bytes.SplitSeq(b, []byte{'\n'}) {
		key, value, _ := bytes.Cut(line, []byte{':'})
		switch string(bytes.TrimSpace(key)) {
		case "model name", "cpu model", "cpu", "Processor":
			if cpu == "" {
				cpu = string(bytes.TrimSpace(value))
			}
		case "flags":
			return cpu, bytes.Contains(value, []byte(" hypervisor"))
		}
	}
	return cpu, false
}

// parseBoot reads the time of the boot in Unix seconds from /proc/stat, 0 if it is not there.
func parseBoot(b []byte) int64 {
	for line := range bytes.SplitSeq(b, []byte{'\n'}) {
		if name, rest := cutField(line); string(name) == "btime" {
			at, _, _ := cutNumber(rest)
			return at
		}
	}
	return 0
}

// virtualization returns the name of the layer between this process and the hardware, as far as it
// is visible from inside.
func virtualization(f *procFS, hypervisor bool) string {
	var layers []string
	vendor := strings.TrimSpace(f.word(f.sys+"/class/dmi/id/sys_vendor") + " " + f.word(f.sys+"/class/dmi/id/product_name"))
	switch xen := f.word(f.sys + "/hypervisor/type"); {
	case hypervisor && vendor != "":
		layers = append(layers, "virtual machine ("+vendor+")")
	case xen != "" && xen != "none":
		layers = append(layers, xen)
	case hypervisor:
		layers = append(layers, "virtual machine")
	}
	if kind := container(f); kind != "" {
		layers = append(layers, kind)
	}
	return strings.Join(layers, ", ")
}

func container(f *procFS) string {
	for file, kind := range map[string]string{"/.dockerenv": "docker container", "/run/.containerenv": "podman container"} {
		if _, err := os.Stat(file); err == nil {
			return kind
		}
	}
	groups := f.word(f.proc + "/self/cgroup")
	for _, mark := range [...]string{"docker", "kubepods", "lxc", "containerd"} {
		if strings.Contains(groups, "/"+mark) {
			return mark + " container"
		}
	}
	return ""
}

func (e *Environment) setNetwork(f *procFS) {
	net := filepath.Join(f.proc, "sys/net")
	e.CongestionControl = f.word(net + "/ipv4/tcp_congestion_control")
	numbers([]byte(f.word(net+"/ipv4/tcp_rmem")), &e.ReceiveMemory[0], &e.ReceiveMemory[1], &e.ReceiveMemory[2])
	numbers([]byte(f.word(net+"/ipv4/tcp_wmem")), &e.SendMemory[0], &e.SendMemory[1], &e.SendMemory[2])
	numbers([]byte(f.word(net+"/core/rmem_max")), &e.ReceiveMost)
	numbers([]byte(f.word(net+"/core/wmem_max")), &e.SendMost)
	numbers([]byte(f.word(net+"/core/somaxconn")), &e.Backlog)
	numbers([]byte(f.word(net+"/ipv4/ip_local_port_range")), &e.PortLow, &e.PortHigh)
	e.PortReuse = f.word(net + "/ipv4/tcp_tw_reuse")
}

// systemName reads PRETTY_NAME from an os-release file.
func systemName(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			return strings.Trim(strings.TrimSpace(v), `"'`)
		}
	}
	return ""
}

func openFiles() (soft, hard uint64, err error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, 0, os.NewSyscallError("getrlimit", err)
	}
	return limit.Cur, limit.Max, nil
}

// RaiseOpenFiles raises this process's soft limit of open files to the hard limit and returns the
// two limits that are then in force. Programs that it starts from then on have the same limits. If
// it fails, it returns the previous limits and the error.
func RaiseOpenFiles() (soft, hard uint64, err error) {
	soft, hard, err = openFiles()
	if err != nil {
		return soft, hard, err
	}
	// Setting is worth it even if the two are equal: Go's runtime raises the soft limit by itself,
	// and restores it in programs that it starts unless it was set explicitly.
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: hard, Max: hard}); err != nil {
		return soft, hard, os.NewSyscallError("setrlimit", err)
	}
	return hard, hard, nil
}
