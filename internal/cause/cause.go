// Package cause weighs hypotheses on the cause of an observation by their evidence.
//
// A caller makes one Hypothesis for each cause that is possible, adds evidence for it and against
// it, and calls Judge. The rules are few on purpose, so that a reader can repeat each verdict by
// hand: strengths are added, the highest sum must lead by a margin, and only evidence that was
// measured at the cause itself, or that excludes all other causes, makes a verdict certain.
package cause

// Strength is the weight of evidence.
type Strength int

// Strengths of evidence.
const (
	Weak   Strength = 1 // it agrees with the cause, and with others
	Strong Strength = 3 // it is expected of this cause and of few others
	Direct Strength = 6 // it was measured at the cause itself
)

// Limits of Judge.
const (
	LeastScore   = 4 // sum of strengths from which a cause can be likely
	LeastLead    = 2 // lead over the next cause from which a cause is likely
	CertainLead  = 4 // lead over the next cause from which a cause with direct evidence is certain
	CertainScore = int(Direct)
)

// Certainty is the reliability of a verdict.
type Certainty string

// Values of Certainty.
const (
	Certain Certainty = "certain"     // direct evidence, and no direct evidence of another cause
	Likely  Certainty = "likely"      // the evidence prefers this cause
	Unknown Certainty = "cannot tell" // no evidence, or several causes are equally possible
)

// An Evidence is one observation. F describes it.
type Evidence[F any] struct {
	Observation F
	Strength    Strength // below 0: it speaks against the cause
	Detail      string   // more exact name of the cause, if the observation implies it
}

// A Hypothesis is a possible cause with its evidence. K identifies the cause.
type Hypothesis[K comparable, F any] struct {
	Cause    K
	Evidence []Evidence[F]
}

// For adds evidence for the cause. detail is the more exact name that it implies, or "".
func (h *Hypothesis[K, F]) For(s Strength, detail string, observation F) {
	h.Evidence = append(h.Evidence, Evidence[F]{observation, s, detail})
}

// Against adds evidence against the cause.
func (h *Hypothesis[K, F]) Against(s Strength, observation F) {
	h.Evidence = append(h.Evidence, Evidence[F]{observation, -s, ""})
}

// Score returns the sum of the strengths.
func (h *Hypothesis[K, F]) Score() (sum int) {
	for _, e := range h.Evidence {
		sum += int(e.Strength)
	}
	return sum
}

// direct reports whether the cause has direct evidence and no strong evidence against it.
func (h *Hypothesis[K, F]) direct() bool {
	found := false
	for _, e := range h.Evidence {
		if e.Strength <= -Strong {
			return false
		}
		found = found || e.Strength >= Direct
	}
	return found
}

// detail returns the detail of the strongest evidence that has a detail, and "" if two details have
// direct evidence.
func (h *Hypothesis[K, F]) detail() string {
	name, most := "", Strength(0)
	for _, e := range h.Evidence {
		switch {
		case e.Detail == "" || e.Strength < most:
		case e.Strength == most && e.Strength >= Direct && e.Detail != name:
			return ""
		case e.Strength > most:
			name, most = e.Detail, e.Strength
		}
	}
	return name
}

// A Verdict is the result of Judge.
type Verdict[K comparable, F any] struct {
	Cause     K      // undefined if Certainty is Unknown
	Detail    string // more exact name of the cause; "": the evidence does not give it
	Certainty Certainty
	Evidence  []Evidence[F] // of the cause; of an unknown cause those of all causes in Among
	Among     []K           // of an unknown cause: causes that the evidence does not distinguish
	Excluded  []Evidence[F] // strong evidence against the other causes
}

// Judge returns the cause that the evidence of all hypotheses prefers. The order of hypotheses has
// no influence on the cause.
func Judge[K comparable, F any](all []Hypothesis[K, F]) Verdict[K, F] {
	best, score, next := -1, 0, 0
	for i := range all {
		switch s := all[i].Score(); {
		case best < 0 || s > score:
			best, score, next = i, s, score
		case s > next:
			next = s
		}
	}
	if best < 0 || score < LeastScore || score-next < LeastLead {
		return undecided(all, score)
	}
	h := &all[best]
	v := Verdict[K, F]{Cause: h.Cause, Detail: h.detail(), Certainty: Likely, Evidence: h.Evidence}
	for i := range all {
		if i != best {
			v.exclude(&all[i])
		}
	}
	if score >= CertainScore && score-next >= CertainLead && h.direct() && !othersDirect(all, best) {
		v.Certainty = Certain
	}
	return v
}

// othersDirect reports whether a hypothesis other than best has direct evidence.
func othersDirect[K comparable, F any](all []Hypothesis[K, F], best int) bool {
	for i := range all {
		if i != best && all[i].direct() {
			return true
		}
	}
	return false
}

// undecided returns the verdict that the cause is unknown, with the causes whose scores are close to
// the highest score.
func undecided[K comparable, F any](all []Hypothesis[K, F], score int) Verdict[K, F] {
	v := Verdict[K, F]{Certainty: Unknown}
	for i := range all {
		if s := all[i].Score(); s > 0 && score-s < LeastLead {
			v.Among = append(v.Among, all[i].Cause)
			v.Evidence = append(v.Evidence, all[i].Evidence...)
			continue
		}
		v.exclude(&all[i])
	}
	return v
}

// exclude adds the strong evidence against a cause.
func (v *Verdict[K, F]) exclude(h *Hypothesis[K, F]) {
	for _, e := range h.Evidence {
		if e.Strength <= -Strong {
			v.Excluded = append(v.Excluded, e)
		}
	}
}
