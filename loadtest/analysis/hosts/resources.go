package hosts

import "weir/loadtest/measure"

// Resources of a host.
const (
	ResourceCPU         = "cpu"  // of all cores of a host
	ResourceCore        = "core" // one core, or the cores that single-threaded processes can use, while others idle
	ResourceIOWait      = "iowait"
	ResourceMemory      = "memory"
	ResourceDisk        = "disk"
	ResourceScratch     = "scratch disk" // of jobs, on a machine without any part of the service
	ResourceReceived    = "network received"
	ResourceSent        = "network sent"
	ResourceNetwork     = "network" // of an emulated link, and of an interface of unknown speed
	ResourceThreads     = "threads"
	ResourceQueue       = "queue"
	ResourceConnections = "connections"
	ResourceListen      = "listen queue"
	ResourceRetransmits = "retransmits"
	ResourceGenerator   = "generator"
	ResourceFiles       = measure.OpenFiles
	ResourcePorts       = measure.Ports
)
