package slow

import (
	"fmt"

	"weir/internal/cause"
	"weir/internal/unit"
)

// stuck judges a service that gives no payload.
func (j *judge) stuck() {
	switch s := j.Stuck; {
	case s.Small:
		j.of(Line, MTU).For(cause.Direct, "", "small requests and small payloads arrive, packets of full size do not")
	case !s.Requests:
		j.of(ServerHost, Queue).For(cause.Direct, "", "its kernel accepts connections, its service answers nothing")
	default:
		j.of(ServerHost, Queue).For(cause.Strong, "", "it answers requests, but sends no payload")
		j.of(ServerDisk, "").For(cause.Strong, "", "it answers requests, but sends no payload")
	}
}

// setup judges the time before the payload: how much more than round trips each phase takes.
func (j *judge) setup(share float64) {
	s, whole := &j.Setup, j.Setup.Sum()+j.payload
	trips := 0.0
	for _, p := range []struct {
		of    what
		time  float64
		trips float64 // round trips that it needs at least
		name  string
	}{
		{what{NameLookup, ""}, s.Lookup, 0, "the name lookup"},
		{what{Connect, ""}, s.Connect, 1, "the connect"},
		{what{TLS, ""}, s.TLS, 2, "the TLS handshake"},
		{what{Login, ""}, s.Login, 3, "the login"},
		{what{Redirector, ""}, s.Redirect, 1, "the redirector"},
		{j.opening(), s.Open, 1, "opening the file"},
		{j.opening(), s.First, 0, "the time to the first byte"},
	} {
		line := min(p.time, p.trips*j.round)
		trips += line
		own := (p.time - line) / whole
		text := fmt.Sprintf("%s takes %s, of which %s are round trips", p.name, unit.Seconds(p.time), unit.Seconds(line))
		switch {
		case own >= half:
			j.of(p.of.cause, p.of.detail).For(cause.Direct, "", text)
		case own >= half/2:
			j.of(p.of.cause, p.of.detail).For(cause.Strong, "", text)
			j.of(p.of.cause, p.of.detail).For(cause.Weak, "", "the largest parts are elsewhere")
		}
	}
	if trips/whole >= half/2 {
		text := fmt.Sprintf("%s of round trips of %s for %s of payload", unit.Seconds(trips), unit.Seconds(j.round), unit.Bytes(j.Size))
		j.of(SmallFiles, "").For(cause.Strong, "", text)
		if trips/whole >= half {
			j.of(SmallFiles, "").For(cause.Strong, "", "round trips are "+unit.Percent(trips/whole)+" of the time")
		}
	} else if share < half+half/2 {
		j.of(SmallFiles, "").For(cause.Weak, "", unit.Bytes(j.Size)+" of payload take less time than what precedes them")
	}
}

// opening names the cause of a long opening: a checksum takes longer for larger files.
func (j *judge) opening() what {
	o := j.Other
	if o == nil || o.Size <= 0 || j.Size < 4*o.Size {
		return what{ServerHost, Queue}
	}
	whole := j.Setup.Open + j.Setup.First
	if whole-o.Seconds < slowAnswer || whole < 1.5*o.Seconds {
		return what{ServerHost, Queue}
	}
	return what{Checksum, ""}
}

// family judges addresses that do not answer. A program that tries such an address first loses a share of its time, which is
// returned. rest is the other time of the transfer.
func (j *judge) family(rest float64) (share float64) {
	for _, a := range j.Families {
		if a.Failed == "" || len(j.Families) < 2 {
			continue
		}
		if share = a.Seconds / (a.Seconds + rest); share >= half/2 {
			j.of(Line, Family).For(cause.Direct, "", fmt.Sprintf("%s: %s after %s, while the other family answers", familyName(a.IPv6), a.Failed,
				unit.Seconds(a.Seconds)))
		}
	}
	return share
}

func familyName(v6 bool) string {
	if v6 {
		return "IPv6"
	}
	return "IPv4"
}
