// Package unit reads and writes quantities with their units: sizes, counts
// per second, bits per second and durations. A number without a unit is
// refused, except 0.
//
// Inside the program all quantities are in base units: bytes, bytes per
// second, operations per second, nanoseconds. Only texts are scaled.
package unit

import "time"

// A Size is a number of bytes. Its text is "1MiB", "1.5GB", "300B".
type Size int64

// A Bitrate is a speed of data in bits per second. Its text is "100Mbit/s"
// (1000-based); "12MB/s" is read, too.
type Bitrate float64

// A Rate is a number of operations per second. Its text is "10/s", "600/min".
type Rate float64

// A Duration is a span of time. Its text is "1.5s", "60m", "250ms", "1h30m", "2d".
type Duration time.Duration

// A Fraction is a share of a whole, 0 to 1. Its text is "1%".
type Fraction float64
