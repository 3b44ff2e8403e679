// Package unit reads and writes quantities with their units: sizes, counts
// per second, bits per second and durations. A number without a unit is
// refused, except 0 and, for fractions, numbers below 1.
//
// Inside the program all quantities are in base units: bytes, bits or
// operations per second, nanoseconds. Only texts are scaled. String writes
// texts that Parse reads back to exactly the same value, so that a plan that
// was written and read again does the same work; Bits, Bytes, Count, Seconds
// and Percent round for people.
package unit

import "time"

// A Size is a number of bytes. Its text is "1MiB", "1.5GB", "300B".
type Size int64

// A Bitrate is a speed of data in bits per second. Its text is "100Mbit/s"
// (1000-based); "12MB/s" is read as well.
type Bitrate float64

// A Rate is a number of operations per second. Its text is "10/s", "600/min".
type Rate float64

// A Duration is a span of time. Its text is "1.5s", "60m", "250ms", "1h30m", "2d".
type Duration time.Duration

// A Fraction is a share of a whole, 0 to 1. Its text is "1%".
type Fraction float64

// MarshalText writes s with a unit. A negative size is an error.
func (s Size) MarshalText() ([]byte, error) { return marshal(s, ParseSize) }

// UnmarshalText parses a size as ParseSize does.
func (s *Size) UnmarshalText(text []byte) error { return unmarshal(s, text, ParseSize) }

// MarshalText writes b with a unit. A negative or infinite speed is an error.
func (b Bitrate) MarshalText() ([]byte, error) { return marshal(b, ParseBitrate) }

// UnmarshalText parses a bitrate as ParseBitrate does.
func (b *Bitrate) UnmarshalText(text []byte) error { return unmarshal(b, text, ParseBitrate) }

// MarshalText writes r with a unit. A negative or infinite rate is an error.
func (r Rate) MarshalText() ([]byte, error) { return marshal(r, ParseRate) }

// UnmarshalText parses a rate as ParseRate does.
func (r *Rate) UnmarshalText(text []byte) error { return unmarshal(r, text, ParseRate) }

// MarshalText writes d with a unit. A negative duration is an error.
func (d Duration) MarshalText() ([]byte, error) { return marshal(d, ParseDuration) }

// UnmarshalText parses a duration as ParseDuration does.
func (d *Duration) UnmarshalText(text []byte) error { return unmarshal(d, text, ParseDuration) }

// MarshalText writes f in percent. A fraction outside 0 to 1 is an error.
func (f Fraction) MarshalText() ([]byte, error) { return marshal(f, ParseFraction) }

// UnmarshalText parses a fraction as ParseFraction does.
func (f *Fraction) UnmarshalText(text []byte) error { return unmarshal(f, text, ParseFraction) }

type quantity interface {
	Size | Bitrate | Rate | Duration | Fraction
	String() string
}

// marshal refuses to write a value that parse could not read again.
func marshal[T quantity](x T, parse func(string) (T, error)) ([]byte, error) {
	text := x.String()
	if _, err := parse(text); err != nil {
		return nil, err
	}
	return []byte(text), nil
}

func unmarshal[T quantity](x *T, text []byte, parse func(string) (T, error)) error {
	v, err := parse(string(text))
	if err != nil {
		return err
	}
	*x = v
	return nil
}
