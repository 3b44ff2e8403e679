package link

// Traffic is what one way of a link carried. Counts are of a span, which is
// usually one second.
type Traffic struct {
	Packets int64 `json:"packets"` // that have arrived
	Bytes   int64 `json:"bytes"`   // of these, IP headers included
	Dropped int64 `json:"dropped"` // because the queue was full
	Lost    int64 `json:"lost"`    // as the link's loss wants it
	Cut     int64 `json:"cut"`     // because the link was down

	// Busy is the share of the time in which the wire was sending; 0 where it
	// has no rate.
	Busy float64   `json:"busy"`
	Wait Quantiles `json:"wait_seconds"` // of packets for the wire
	// Late is how much later than they should packets have arrived: the
	// emulation's own fault.
	Late Quantiles `json:"late_seconds"`
}

// Quantiles are of a span's packets, each at most 13% too high.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}
