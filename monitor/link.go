package monitor

import "weir/link"

// A Link is what an emulated link went through in the span. What it carried to
// the clients is what the interface "to clients" of its sample has sent, and
// from them, what "from clients" has received.
type Link struct {
	Down        bool         `json:"down,omitempty"` // at the end of the span
	ToClients   link.Traffic `json:"to_clients"`
	FromClients link.Traffic `json:"from_clients"`
	Cost        float64      `json:"emulation_cpu_seconds"` // CPU time that the emulation took; 0 where the kernel does it
}

// Interfaces of a link's sample.
const (
	ToClients   = "to clients"
	FromClients = "from clients"
)
