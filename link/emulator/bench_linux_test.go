package emulator

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"weir/internal/burn"
	"weir/internal/unit"
	"weir/link"
)

// The cost of a link: CPU time of the clients, the service, the kernel's work for the two, and the
// emulation, for each of some rates.
func BenchmarkLink(b *testing.B) {
	for _, rate := range []unit.Bitrate{100e6, 1e9, 4e9} {
		b.Run(rate.String(), func(b *testing.B) {
			n, r := up(b, link.Spec{Rate: rate, Queue: 20 * ms, Congestion: "cubic"})
			conn := dial(b, n.Sites[0], serve(b, n, pour))
			if _, err := io.CopyN(io.Discard, conn, 10e6); err != nil {
				b.Fatal(err)
			}
			begin, before := time.Now(), burn.Process()
			bytes := int64(0)
			for b.Loop() { // one second each, on any machine
				bytes += passed(b, conn, time.Now().Add(time.Second))
			}
			span := time.Since(begin).Seconds()
			cpu := (burn.Process() - before).Seconds()
			cost, late, seconds := 0.0, 0.0, 0.0
			for _, s := range r.samples() {
				cost += s.Cost
				seconds += s.Seconds
				late = max(late, s.ToClients.Late.P99)
			}
			share := 0.0
			if seconds > 0 {
				share = cost / seconds
			}
			gbit := 8 * float64(bytes) / 1e9
			b.ReportMetric(gbit*1e3/span, "Mbit/s")
			b.ReportMetric(1e3*(cpu/gbit), "cpu-ms/Gbit")
			b.ReportMetric(1e3*share*span/gbit, "emulation-cpu-ms/Gbit")
			b.ReportMetric(100*share, "emulation-%")
			b.ReportMetric(1e6*late, "late-us-p99")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// passed returns the number of bytes that arrive until the given time.
func passed(b *testing.B, c *net.TCPConn, until time.Time) int64 {
	b.Helper()
	_ = c.SetReadDeadline(until)
	n, err := io.Copy(io.Discard, c)
	var late net.Error
	if err != nil && (!errors.As(err, &late) || !late.Timeout()) {
		b.Fatal(err)
	}
	return n
}
