package queue

import (
	"strconv"
	"time"

	"weir/internal/say"
	"weir/transfer"
)

// pause is how long a file waits after a failed attempt, its n-th: a random part
// of a bound that doubles, so that files that failed together do not come again
// together ("full jitter", aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter).
// A server that said when to come is not asked before, and not by all at once.
func pause(o transfer.Outcome, n int, random float64) time.Duration {
	base, bound := 2*time.Second, 5*time.Minute
	switch o.Fault {
	case transfer.Throttled:
		if o.After > 0 {
			after := min(o.After, 24*time.Hour)
			return after + time.Duration(random*float64(after/10+time.Second))
		}
		base, bound = 10*time.Second, 15*time.Minute
	case transfer.DestFull:
		base, bound = 30*time.Second, 30*time.Minute
	case transfer.Denied:
		base, bound = 10*time.Second, 10*time.Minute
	case transfer.Away: // it may be back soon, and asking costs little
		bound = time.Minute
	case transfer.LeaseLost, transfer.Checksum, transfer.Stopped:
		base, bound = time.Second, time.Minute
	}
	for range min(max(n-1, 0), 16) {
		base = min(2*base, bound)
	}
	return time.Duration(random * float64(base))
}

// sized is a size for people, to the byte.
func sized(n int64) string {
	return strconv.FormatInt(n, 10) + " " + say.Either(int(n), "byte", "bytes")
}
