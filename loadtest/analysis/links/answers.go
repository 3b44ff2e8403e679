package links

import (
	"time"

	"weir/internal/cause"
	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/measure"
)

// Limits of the evidence of answers.
const (
	someAnswers = 0.3 // of a minute, and of the requests: less trouble is no evidence
	noAnswers   = 0.9 // share of the requests that failed from which there was no service
	slowAnswer  = 5.0 // seconds, mean
)

// A trouble has the answers of a service in a span of time in which they failed, took long or asked to
// come back later.
type trouble struct {
	from, to time.Time
	measure.Service
}

// An answerSum sums the troubles of a service in a minute. Requests count by the share of their span.
type answerSum struct {
	seconds, busy    float64 // of spans
	requests, failed float64
	spent            float64 // seconds of all requests
	reason           string  // of a failure
}

// answered adds an event about a service.
func (s *Sums) answered(e *measure.Event) {
	t := trouble{to: e.Time, Service: *e.Service}
	// requests that took longer than the span began before it
	t.from = e.Time.Add(-basics.Duration(max(t.Seconds, t.Latency)))
	s.troubles = append(s.troubles, t)
}

// answersOf returns the sums of the troubles of a service by minutes.
func (s *Sums) answersOf(name string) (all []answerSum) {
	if !s.started {
		return nil
	}
	for t := range basics.Each(s.troubles) {
		if t.Name != name || t.to.Before(s.begin) {
			continue
		}
		span := t.to.Sub(t.from).Seconds()
		if t.from.Before(s.begin) {
			span = t.to.Sub(s.begin).Seconds()
		}
		s.spread(t.from, t.to, func(minute, _ int, share float64) {
			minute = min(minute, 4*mostMinutes)
			for len(all) <= minute {
				all = append(all, answerSum{})
			}
			a, seconds := &all[minute], share*span
			a.seconds += seconds
			if t.Busy {
				a.busy += seconds
			}
			a.requests, a.failed = a.requests+share*float64(t.Requests), a.failed+share*float64(t.Failed)
			a.spent += share * float64(t.Requests) * t.Latency
			if t.Failed > 0 {
				a.reason = t.Reason
			}
		})
	}
	return all
}

// answers adds the evidence of the answers of the transfer service and of the issuer of credentials.
func (s *subject) answers() {
	s.troubled(&s.service, Answers, measure.TransferService, s.services)
	s.troubled(&s.credentials, Issuer, measure.Issuer, s.issuers)
}

// troubled adds the evidence of the answers of a service.
func (s *subject) troubled(h *hypothesis, detail, name string, all []answerSum) {
	if s.at >= len(all) || all[s.at].seconds < someAnswers*s.sums.minute.Seconds() {
		return
	}
	a, length := &all[s.at], s.sums.minute.Seconds()
	if lost := stats.Ratio(a.failed, a.requests); lost >= someAnswers {
		strength := cause.Strong + cause.Weak
		if lost >= noAnswers && a.seconds >= 0.5*length && s.wellBefore(all) {
			strength = cause.Direct + cause.Weak // more exact than its effect, the queue
		}
		why := func() fact.Fact {
			return fact.New("challenge.because.unanswered", "service", name, "share", lost, "seconds", min(a.seconds, length), "reason", a.reason)
		}
		h.For(strength, detail, why)
		if detail == Issuer && strength > cause.Direct { // copies wait for weir's requests, not for the service
			s.service.Against(cause.Direct+cause.Strong, why)
		}
	}
	if a.busy >= someAnswers*length {
		h.For(cause.Strong+cause.Weak, detail, func() fact.Fact {
			return fact.New("challenge.because.busy", "service", name, "seconds", min(a.busy, length))
		})
	}
	if mean := stats.Ratio(a.spent, a.requests); mean >= conspicuous {
		strength := cause.Weak
		if mean >= slowAnswer {
			strength = cause.Strong
		}
		if detail == Issuer && a.spent >= someAnswers*length { // requests wait for their credentials
			strength += cause.Weak
		}
		h.For(strength, detail, func() fact.Fact {
			return fact.New("challenge.because.slow_answers", "service", name, "seconds", mean, "span", min(a.seconds, length))
		})
	}
}

// conspicuous is the mean time to an answer in seconds from which it is evidence.
const conspicuous = 1.0

// wellBefore reports whether the link had its target in the last minute before the troubles.
func (s *subject) wellBefore(all []answerSum) bool {
	for at := s.at - 1; at >= 0; at-- {
		if m := s.judged(s.index, at); all[at].seconds == 0 {
			return m != nil && !m.below()
		}
	}
	return false
}
