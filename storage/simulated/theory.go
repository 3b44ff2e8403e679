package simulated

import (
	"math"
	"time"
)

// A Theory computes what a closed load of clients gets from a service without
// bandwidth limit and errors. What a client does besides, such as connecting
// for each operation, counts as thinking.
type Theory struct {
	Servers int           // k
	Service time.Duration // S, mean
	Think   time.Duration // Z, mean
}

// Rate returns the operations per second that n clients get, exactly, if
// service times are exponential: the machine repairman's model M/M/k//N, whose
// number of waiting clients is a birth-death process. (Gross and Harris,
// Fundamentals of Queueing Theory, finite-source queues. Think times may have
// any distribution.) A service that takes no time has no rate: it is infinite
// without thinking.
func (t Theory) Rate(n int) float64 {
	s, z, k := t.Service.Seconds(), t.Think.Seconds(), t.Servers
	switch {
	case n <= 0:
		return 0
	case s == 0:
		return float64(n) / z
	case z == 0:
		return float64(min(n, k)) / s
	}
	// p is the weight of j clients being at the service, relative to the
	// largest so far, so that no factor leaves the range of floating point.
	p, all, busy := 1.0, 1.0, 0.0
	for j := 1; j <= n; j++ {
		p *= float64(n-j+1) / z * s / float64(min(j, k))
		all += p
		busy += p * float64(min(j, k))
		if p > 1e100 {
			all, busy, p = all/p, busy/p, 1
		}
	}
	return busy / all / s
}

// Residence returns the mean time that an operation of n clients takes, by
// Little's law: R = N/X - Z.
func (t Theory) Residence(n int) time.Duration {
	return time.Duration((float64(n)/t.Rate(n) - t.Think.Seconds()) * float64(time.Second))
}

// Bounds returns the rates between which that of n clients must lie, for
// exponential service times: with nobody ever in the way, and with everybody
// always there first.
func (t Theory) Bounds(n int) (low, high float64) {
	s, z, k := t.Service.Seconds(), t.Think.Seconds(), float64(t.Servers)
	waiting := s * math.Max(0, float64(n)-k) / k
	return float64(n) / (z + s + waiting), math.Min(float64(n)/(z+s), k/s)
}

// Knee returns N*, the number of clients at which the two upper bounds of the
// rate meet: k(S+Z)/S. From there on clients wait for each other.
func (t Theory) Knee() float64 {
	return float64(t.Servers) * float64(t.Service+t.Think) / float64(t.Service)
}
