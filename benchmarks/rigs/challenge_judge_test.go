package rigs

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// challengeFindings has the fields of the findings on a data challenge that are used here.
type challengeFindings struct {
	Seconds float64 `json:"measured_seconds"`
	Level   float64 `json:"level_ratio"`
	Facts   []struct {
		Text string `json:"text"`
	} `json:"challenge_facts"`
	Links []challengeLink `json:"links"`
	Clock *float64        `json:"clock_ahead_seconds"`
}

type challengeLink struct {
	Source   string  `json:"source"`
	Dest     string  `json:"destination"`
	Level    float64 `json:"level_achieved_ratio"`
	Ratio    float64 `json:"achieved_ratio"`
	Failed   int64   `json:"failed_copies"`
	Expired  int64   `json:"expired"`
	Failures []struct {
		Class  string `json:"class"`
		End    string `json:"end"`
		Copies int64  `json:"copies"`
	} `json:"failures"`
	Cause    *challengeCause `json:"leading_cause"`
	Episodes []struct {
		challengeCause
		From  float64 `json:"from_seconds"`
		To    float64 `json:"to_seconds"`
		Ratio float64 `json:"achieved_ratio"`
	} `json:"episodes"`
}

type challengeCause struct {
	Kind      string   `json:"kind"`
	Detail    string   `json:"detail"`
	Site      string   `json:"site"`
	Certainty string   `json:"certainty"`
	Shared    []string `json:"shared"`
}

// String returns a cause in the form of the page.
func (c *challengeCause) String() string {
	parts := []string{c.Kind}
	if c.Site != "" {
		parts = append(parts, c.Site)
	}
	if c.Detail != "" {
		parts = append(parts, c.Detail)
	}
	text := strings.Join(parts, " ")
	if c.Certainty == "certain" {
		text += " (certain)"
	}
	return text
}

// is reports whether a cause is one of the answers, each "kind site detail" with * for any
// and - for an empty word, separated by |. An answer with fewer words does not restrict the others.
func (c *challengeCause) is(answers string) bool {
	for _, answer := range strings.Split(answers, "|") {
		have, fits := []string{c.Kind, c.Site, c.Detail}, true
		for i, want := range strings.Fields(answer) {
			fits = fits && (want == "*" || want == have[i] || want == "-" && have[i] == "")
		}
		if fits {
			return true
		}
	}
	return false
}

func (l *challengeLink) name() string { return l.Source + l.Dest }

// The least share of its target with which a link holds it.
const held = 0.95

// A grade is the result of a rig of data challenges.
type grade struct {
	right, unknown, wrong, certain int // links; certain: wrong and certain
}

// links holds the verdicts on the links against the truth. limited are the links that are held back,
// and answers their causes; free are the other links that the fault may hold back as well.
func (s *stage) links(r *ran, limited, answers string, free ...string) (g grade) {
	s.expect(r.findings != nil && r.Challenge != nil, "findings on the challenge expected (exit %d: %s)", r.exit, lastLine(r.text))
	if r.findings == nil || r.Challenge == nil {
		return grade{wrong: 1}
	}
	for i := range r.Challenge.Links {
		l := &r.Challenge.Links[i]
		is := slices.Contains(strings.Fields(limited), l.name())
		if !is && slices.Contains(free, l.name()) {
			continue
		}
		s.link(l, is, answers, &g)
	}
	return g
}

// link judges the verdict on one link.
func (s *stage) link(l *challengeLink, limited bool, answers string, g *grade) {
	for _, e := range l.Episodes {
		if e.Certainty == "certain" && e.Detail != "start" && (!limited || !e.is(answers)) {
			g.certain++
			s.expect(false, "%s: certain and wrong: %s from %.0f to %.0f s", l.name(), e.String(), e.From, e.To)
		}
	}
	switch {
	case !limited && l.Level >= held:
		g.right++
	case !limited && (l.Cause == nil || l.Cause.Kind == "unknown"):
		g.unknown++
		s.expect(false, "%s: nothing limits it, but %.0f%% of its target", l.name(), 100*l.Level)
	case !limited:
		g.wrong++
		s.expect(false, "%s: nothing limits it, but %.0f%% of its target: %s", l.name(), 100*l.Level, l.Cause)
	case l.Cause == nil:
		g.wrong++
		s.expect(false, "%s: %s expected, but no minute is below the target", l.name(), answers)
	case l.Cause.is(answers):
		g.right++
	case l.Cause.Kind == "unknown":
		g.unknown++
		s.expect(false, "%s: %s expected, cannot tell", l.name(), answers)
	default:
		g.wrong++
		s.expect(false, "%s: %s expected, is %s", l.name(), answers, l.Cause)
	}
}

// challengeReports returns weir's report of a data challenge: the headline, and the causes of links
// below their targets.
func (r *ran) challengeReports() string {
	if r.findings == nil || r.Challenge == nil {
		return fmt.Sprintf("no findings: %s; exit %d", lastLine(r.text), r.exit)
	}
	c := r.Challenge
	var all []string
	if len(c.Facts) > 0 {
		all = append(all, "“"+c.Facts[0].Text+"”")
	}
	for i := range c.Links {
		l := &c.Links[i]
		if l.Level < held {
			text := fmt.Sprintf("%s %.0f%%", l.name(), 100*l.Level)
			if l.Cause != nil {
				text += " " + l.Cause.String()
			}
			all = append(all, text)
		}
	}
	if r.exit != 0 {
		all = append(all, fmt.Sprintf("exit %d", r.exit))
	}
	return strings.Join(all, "; ")
}

// A controlled is the control of links that nothing limits.
type controlled struct {
	Errors     []float64 // of the mean over each minute at one target, as a share of it
	Overshoots []float64 // of the highest mean over twenty seconds in the minute after a change, above the target
}

// A gridSecond is a line of links.jsonl.
type gridSecond struct {
	Start   time.Time `json:"start"`
	Seconds float64   `json:"duration_seconds"`
	Stage   int       `json:"step"`
	Source  string    `json:"source"`
	Dest    string    `json:"destination"`
	Target  float64   `json:"target_bytes_per_second"`
	Moved   float64   `json:"moved_bytes"`
}

// control returns the control of all links of a run: each minute of each stage, from its beginning.
func (s *stage) control(r *ran) (c controlled) {
	lines := map[string][]gridSecond{}
	s.must(readLines(filepath.Join(r.dir, "links.jsonl"), func(line []byte) error {
		var x gridSecond
		err := json.Unmarshal(line, &x)
		name := x.Source + x.Dest
		lines[name] = append(lines[name], x)
		return err
	}))
	for _, all := range lines {
		for len(all) > 0 {
			n := 1
			for n < len(all) && all[n].Stage == all[0].Stage {
				n++
			}
			c.stage(all[:n])
			all = all[n:]
		}
	}
	return c
}

const (
	overshootSpan = 20 // seconds over which overshoots are averaged; a file is 5% of their bytes
	leastFiles    = 50 // in a minute at the target, at least: a stage with fewer files is not measured
)

// stage adds a stage of a link. Lines at its ends have a target in between, and at the end of the
// challenge none. The first line of the challenge has nearly the target: it counts, as the copies
// that bring the link to its rate are in it.
func (c *controlled) stage(all []gridSecond) {
	target := all[len(all)/2].Target
	off := func(x gridSecond) bool { return math.Abs(x.Target-target) > 0.01*target }
	for len(all) > 0 && off(all[0]) {
		all = all[1:]
	}
	for len(all) > 0 && off(all[len(all)-1]) {
		all = all[:len(all)-1]
	}
	if target*60 < leastFiles*gridFile || len(all) < overshootSpan {
		return // a ramp, a pause, or few files
	}
	most := 0.0
	for i := 0; i+overshootSpan <= min(len(all), 60); i++ {
		most = max(most, ratioOf(all[i:i+overshootSpan]))
	}
	c.Overshoots = append(c.Overshoots, most-1)
	for from := 0; from+60 <= len(all)+1; from += 60 { // a line may be missing at an end
		c.Errors = append(c.Errors, math.Abs(ratioOf(all[from:min(from+60, len(all))])-1))
	}
}

// machineFull returns the share of the time in which all cores of this machine were busy.
func (s *stage) machineFull(r *ran) float64 {
	full, all := 0.0, 0.0
	s.must(readLines(filepath.Join(r.dir, "hosts.jsonl"), func(line []byte) error {
		var x struct {
			Role  string    `json:"role"`
			Cores []float64 `json:"core_busy"`
		}
		if err := json.Unmarshal(line, &x); err != nil || x.Role != "client" || len(x.Cores) == 0 {
			return err
		}
		all++
		if slices.Min(x.Cores) > 0.97 {
			full++
		}
		return nil
	}))
	return full / max(all, 1)
}

// ratioOf returns bytes over the target's bytes.
func ratioOf(all []gridSecond) float64 {
	moved, wanted := 0.0, 0.0
	for _, x := range all {
		moved, wanted = moved+x.Moved, wanted+x.Target*x.Seconds
	}
	return moved / wanted
}

// String returns the figures of control in the form of the page.
func (c *controlled) String() string {
	if len(c.Errors) == 0 || len(c.Overshoots) == 0 {
		return ""
	}
	return fmt.Sprintf("error of a minute: at most %.1f%%; overshoot of 20 s: at most %.1f%%", 100*slices.Max(c.Errors),
		100*slices.Max(c.Overshoots))
}
