package slow

import (
	"fmt"

	"weir/internal/cause"
	"weir/internal/unit"
)

// JudgeCopy judges a third-party copy by the transfers of this host with its source and its destination: an end that
// is no faster from here explains the rate of the copy. end is "source", "destination" or "".
func JudgeCopy(of *Flow, source, dest *Seen) (v Verdict, end string) {
	read, write := middle(source.Fresh, rateOf), middle(dest.Fresh, rateOf)
	if of.Rate == 0 || read == 0 || write == 0 {
		return Verdict{Certainty: cause.Unknown, Text: "Cannot tell: not all three were measured."}, ""
	}
	sub, least := Judge(source), read
	end = "source"
	if write < read {
		sub, least, end = Judge(dest), write, "destination"
	}
	text := fmt.Sprintf("the copy has %s; from here the source gives %s, the destination takes %s", unit.Bits(of.Rate), unit.Bits(read),
		unit.Bits(write))
	if of.Rate > cached*least {
		return Verdict{Certainty: cause.Unknown, Evidence: []string{text},
			Text: "Cannot tell: the copy is faster than the transfers of this host: " + text + "."}, ""
	}
	if of.Rate < least/cached {
		return Verdict{Certainty: cause.Unknown, Among: []Cause{Line, ServerLimit}, Evidence: []string{text},
			Text: "Cannot tell: the line between the two, or a limit of their copies. Both ends are faster from here: " + text + "."}, ""
	}
	if least > 0.7*max(read, write) { // both are as slow: perhaps it is this host's line
		return Verdict{Certainty: cause.Unknown, Among: []Cause{Line}, Evidence: []string{text},
			Text: "Cannot tell: both ends are as slow from here as the copy: " + text + "."}, ""
	}
	sub.Evidence = append([]string{text}, sub.Evidence...)
	if sub.Certainty == cause.Certain {
		sub.Certainty = cause.Likely // it was measured from here, and not from the other end
	}
	sub.Text = "At the " + end + ": " + sub.Text
	return sub, end
}
