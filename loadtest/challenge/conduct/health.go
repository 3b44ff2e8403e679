package conduct

import (
	"fmt"
	"time"

	"weir/internal/unit"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/measure"
)

const (
	healthTime = 10 * time.Second // between two looks at the transfer service
	slowAnswer = time.Second      // mean time to an answer from which it is recorded
)

// health records the requests to the transfer service, and to the issuer of its credentials, if they
// failed, took long or were to be repeated later. With direct injection there is no service: the
// failures of sites are those of copies.
func (s *session) health(now time.Time) error {
	span := now.Sub(s.notes.healthy)
	if span < healthTime || s.c.Inject.By == challenge.Direct {
		return nil
	}
	first := s.notes.healthy.IsZero()
	s.notes.healthy = now
	h := s.injector.Health()
	if first { // with the requests of the preparation
		return nil
	}
	if err := s.answers(measure.TransferService, &h, span, now); err != nil || h.Issuer == nil {
		return err
	}
	return s.answers(measure.Issuer, h.Issuer, span, now)
}

// answers writes an event about the requests to a service. It warns at most once a minute, if all
// requests failed or the service requested a pause.
func (s *session) answers(name string, h *inject.Health, span time.Duration, now time.Time) error {
	if h.Failed == 0 && h.Latency < slowAnswer && !h.Busy {
		return nil
	}
	e := measure.Event{Time: now.UTC(), Kind: measure.EventService, Step: s.notes.stage, Service: &measure.Service{Name: name,
		Seconds: span.Seconds(), Requests: h.Requests, Failed: h.Failed, Latency: h.Latency.Seconds(), Busy: h.Busy, Reason: oneLine(h.Reason)}}
	e.Text = fmt.Sprintf("the %s answered %d of %d requests in the mean after %v", name, h.Requests-h.Failed, h.Requests,
		unit.Duration(h.Latency.Round(time.Millisecond)))
	switch {
	case h.Requests == 0:
		e.Text = "the " + name + " asked to come back later"
	case h.Busy:
		e.Text += " and asked to come back later"
	}
	if h.Reason != "" {
		e.Text += ": " + e.Service.Reason
	}
	if err := s.out.Event(e); err != nil {
		return err
	}
	if h.Failed < h.Requests && !h.Busy || !s.notes.due(name, now, time.Minute) {
		return nil
	}
	return s.warn(e.Text)
}
