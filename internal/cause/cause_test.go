package cause_test

import (
	"testing"

	"weir/internal/cause"
)

type hypothesis = cause.Hypothesis[string, string]

func of(name string, strengths ...cause.Strength) hypothesis {
	h := hypothesis{Cause: name}
	for _, s := range strengths {
		if s < 0 {
			h.Against(-s, "against")
			continue
		}
		h.For(s, "", "for")
	}
	return h
}

// Each verdict follows from the sums of strengths and from the place of the measurement.
func TestJudge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		all       []hypothesis
		cause     string
		certainty cause.Certainty
		among     int
	}{
		"nothing":           {nil, "", cause.Unknown, 0},
		"weak":              {[]hypothesis{of("a", cause.Weak)}, "", cause.Unknown, 1},
		"strong":            {[]hypothesis{of("a", cause.Strong, cause.Weak), of("b", cause.Weak)}, "a", cause.Likely, 0},
		"tie":               {[]hypothesis{of("a", cause.Strong, cause.Weak), of("b", cause.Strong)}, "", cause.Unknown, 2},
		"direct":            {[]hypothesis{of("b", cause.Weak), of("a", cause.Direct)}, "a", cause.Certain, 0},
		"direct, doubted":   {[]hypothesis{of("a", cause.Direct, cause.Strong, -cause.Strong)}, "a", cause.Likely, 0},
		"two direct":        {[]hypothesis{of("a", cause.Direct, cause.Direct), of("b", cause.Direct)}, "a", cause.Likely, 0},
		"lead is too small": {[]hypothesis{of("a", cause.Direct), of("b", cause.Strong)}, "a", cause.Likely, 0},
		"strong, no direct": {[]hypothesis{of("a", cause.Strong, cause.Strong, cause.Strong)}, "a", cause.Likely, 0},
	} {
		v := cause.Judge(c.all)
		if v.Certainty != c.certainty || v.Certainty != cause.Unknown && v.Cause != c.cause || len(v.Among) != c.among {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// Two details with direct evidence contradict each other: the cause has none.
func TestDetail(t *testing.T) {
	t.Parallel()
	h := hypothesis{Cause: "a"}
	h.For(cause.Strong, "site", "")
	h.For(cause.Direct, "disk", "")
	if v := cause.Judge([]hypothesis{h}); v.Detail != "disk" {
		t.Errorf("%+v", v)
	}
	h.For(cause.Direct, "interface", "")
	if v := cause.Judge([]hypothesis{h}); v.Detail != "" {
		t.Errorf("%+v", v)
	}
}

// A verdict has the strong evidence against the other causes, and no other.
func TestExcluded(t *testing.T) {
	t.Parallel()
	all := []hypothesis{of("a", cause.Strong, cause.Strong, -cause.Weak), of("b", cause.Weak, -cause.Strong),
		of("c", -cause.Weak), of("d", -cause.Direct)}
	if v := cause.Judge(all); v.Cause != "a" || len(v.Excluded) != 2 || v.Excluded[0].Strength != -cause.Strong {
		t.Errorf("%+v", v)
	}
	all[1].For(cause.Direct, "", "for") // 4, and 5 of the first
	if v := cause.Judge(all); v.Certainty != cause.Unknown || len(v.Among) != 2 || len(v.Excluded) != 1 {
		t.Errorf("%+v", v)
	}
}
