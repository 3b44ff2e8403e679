package simulated

import (
	"math"
	"time"
)

// A Theory computes the throughput of a closed load of clients at a service without bandwidth
// limit, errors and noise. Other activities of a client, such as connecting for each operation,
// count as thinking.
type Theory struct {
	Servers int           // k
	Service time.Duration // S, mean
	Think   time.Duration // Z, mean
	// Sigma and Kappa are contention and coherency, if any is above 0; then Servers mean nothing.
	Sigma, Kappa float64
	Collapse     int     // with more operations than that, and 0 never,
	Left         float64 // the share of the rate that is left
}

// Theory returns the theory of c's service under clients that pause for think between operations.
func (c Config) Theory(think time.Duration) Theory {
	return Theory{Servers: c.Servers, Service: c.Service, Think: think, Sigma: c.Sigma, Kappa: c.Kappa, Collapse: c.Collapse, Left: c.Left}
}

// Rate returns the rate at which operations end while n of them are present.
func (c Config) Rate(n int) float64 { return c.Theory(0).at(n) }

// at returns the rate at which operations end while n of them are present.
func (t Theory) at(n int) float64 {
	x, s := float64(n), t.Service.Seconds()
	rate := math.Min(x, float64(t.Servers)) / s
	if t.Sigma > 0 || t.Kappa > 0 {
		rate = x / s / (1 + t.Sigma*(x-1) + t.Kappa*x*(x-1))
	}
	if t.Collapse > 0 && n > t.Collapse {
		rate *= t.Left
	}
	return rate
}

// Rate returns the operations per second that n clients get, exactly, if service times are exponential: the number
// of clients at the service is a birth-death process, with births at (n-j)/Z and deaths at the service's rate of j.
// With servers this is the machine repairman's model M/M/k//N. (Gross and Harris, Fundamentals of Queueing Theory,
// finite-source queues. Think times may have any distribution: Baskett, Chandy, Muntz and Palacios, Journal of the
// ACM 22, 1975.) A service that takes no time has no rate: it is infinite without thinking.
func (t Theory) Rate(n int) float64 {
	z := t.Think.Seconds()
	switch {
	case n <= 0:
		return 0
	case t.Service == 0:
		return float64(n) / z
	case z == 0:
		return t.at(n)
	}
	// Weights of j clients being at the service are kept as logarithms, relative to the largest so
	// far, so that all stay in the range of floating point.
	log, top, all, done := 0.0, 0.0, 1.0, 0.0
	for j := 1; j <= n; j++ {
		rate := t.at(j)
		log += math.Log(float64(n-j+1) / z / rate)
		if log > top {
			shrink := math.Exp(top - log)
			all, done, top = all*shrink, done*shrink, log
		}
		p := math.Exp(log - top)
		all += p
		done += p * rate
	}
	return done / all
}

// Residence returns the mean time that an operation of n clients takes, by Little's law: R = N/X - Z.
func (t Theory) Residence(n int) time.Duration {
	return time.Duration((float64(n)/t.Rate(n) - t.Think.Seconds()) * float64(time.Second))
}

// Bounds returns the limits of the rate of n clients, for exponential service times and servers:
// without any waiting, and with all others always first.
func (t Theory) Bounds(n int) (low, high float64) {
	s, z, k := t.Service.Seconds(), t.Think.Seconds(), float64(t.Servers)
	waiting := s * math.Max(0, float64(n)-k) / k
	return float64(n) / (z + s + waiting), math.Min(float64(n)/(z+s), k/s)
}

// Knee returns N*, the number of clients at which the two upper bounds of the rate meet: k(S+Z)/S. From there on
// clients wait for each other.
func (t Theory) Knee() float64 {
	return float64(t.Servers) * float64(t.Service+t.Think) / float64(t.Service)
}

// Best returns the number of clients, from 1 to most, that gets the highest rate, and that rate. Of equals it is
// the least.
func (t Theory) Best(most int) (n int, rate float64) {
	for i := 1; i <= most; i++ {
		if x := t.Rate(i); x > rate*(1+1e-12) {
			n, rate = i, x
		}
	}
	return n, rate
}

// Saturation returns the number of clients at which the line from zero through the rate of one
// client reaches the best rate of 1 to most clients: N* for a service of servers whose best rate is
// all that they can do.
func (t Theory) Saturation(most int) float64 {
	_, rate := t.Best(most)
	return rate / t.Rate(1)
}
