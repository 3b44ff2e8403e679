package links

import (
	"weir/internal/cause"
	"weir/loadtest/analysis/fact"
)

// partFiles is the number of files that the targets of a site's other links require in a part of a
// minute, from which a part without any bytes is no accident.
const partFiles = 6

// interrupted adds the evidence of a site that did not answer in a part of the minutes: all of its
// links moved no bytes then, while the other site of the link moved bytes elsewhere, and the bytes
// that the link is short of are those of that time.
func (f failures) interrupted() {
	s := f.s
	if s.m.ratio() <= noBytes || !f.sudden() {
		return
	}
	for i := range s.ends {
		e, partner := &s.ends[i], &s.ends[1-i]
		seconds, lost := 0.0, 0.0
		for at := s.span.from; at < s.span.to; at++ {
			for part := range parts {
				if missing, ok := f.silentPart(e, partner, at, part); ok {
					seconds += float64(s.l.minutes[at].part[part].seconds)
					lost += missing
				}
			}
		}
		if lost < s.m.missing()/2 || seconds == 0 {
			continue
		}
		total := seconds
		e.h.For(cause.Strong+cause.Weak, Away, func() fact.Fact {
			return fact.New("challenge.because.interrupted", "site", e.name, "seconds", total, "partner", partner.name)
		})
	}
}

// sudden reports whether copies are short enough that bytes are reported in the part in which they
// move.
func (f failures) sudden() bool {
	s := f.s
	return s.l.whole.count > 0 && s.l.whole.quantile(0.5) < s.sums.minute.Seconds()/parts/4
}

// silentPart reports whether no link of a site moved bytes in a part of a minute, while links of its
// partner to other sites did, and returns the bytes that the link was short of.
func (f failures) silentPart(e, partner *end, at, part int) (missing float64, ok bool) {
	s := f.s
	if at >= len(s.l.minutes) || s.l.minutes[at].part[part].seconds == 0 || s.l.minutes[at].part[part].moved > 0 {
		return 0, false
	}
	files := 0.0
	for _, links := range [][]int{e.other, e.away} {
		for _, i := range links {
			m := s.judge.judged(i, at)
			if m == nil {
				continue
			}
			if m.part[part].moved > 0 {
				return 0, false
			}
			files += float64(m.high) * float64(m.part[part].seconds) / max(1, s.links[i].size())
		}
	}
	elsewhere := false
	for _, links := range [][]int{partner.other, partner.away} {
		for _, i := range links {
			m := s.judge.judged(i, at)
			elsewhere = elsewhere || m != nil && m.part[part].moved > 0 && s.links[i].source != e.site && s.links[i].dest != e.site
		}
	}
	m := &s.l.minutes[at]
	return float64(m.high) * float64(m.part[part].seconds), files >= partFiles && elsewhere
}
