package rigs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab/labtest"
)

// mostChallenge is the longest duration of a rig of data challenges.
const mostChallenge = 9 * time.Minute

// challengeVerb is the command that carries out a data challenge.
const challengeVerb = "challenge"

// A challengeResult is the outcome of a rig of data challenges.
type challengeResult struct {
	result
	grade   grade
	heldOut bool
	control controlled
	full    float64 // share of the time in which all cores of the machine were busy
}

// word returns the outcome as a word of the page.
func (r *challengeResult) word() string {
	switch {
	case r.skipped != "":
		return "skipped: " + r.skipped
	case r.grade.certain > 0:
		return "**wrong and certain**"
	case r.caught():
		return "right"
	case r.grade.wrong == 0 && r.grade.unknown > 0:
		return "cannot tell"
	}
	return "**wrong**"
}

// TestChallengeRigs carries out data challenges whose limits are known: with -full all, else one
// short one. Some of them run at the same time: the flag -parallel sets their number.
func TestChallengeRigs(t *testing.T) {
	tier.Full(t, "a data challenge with a known truth, which takes a minute")
	if *areaFlag != "" && *areaFlag != challengeArea {
		t.Skip("not of area " + *areaFlag)
	}
	weir := builtWeir(t)
	if !*fullFlag {
		r := shortChallenge()
		res := &challengeResult{result: result{rig: &r.rig}}
		r.carryOut(t, weir, res)
		for _, m := range res.missed {
			t.Errorf("%s: %s (%s)", r.truth, m, strings.Join(res.says, "; "))
		}
		return
	}
	all := challengeRigs()
	results := make([]challengeResult, len(all))
	about := aboutMachine(t.Context())
	var mu sync.Mutex
	write := func() {
		mu.Lock()
		defer mu.Unlock()
		if *outFlag != "" {
			require.NoError(t, writeChallenges(*outFlag, about, results))
		}
	}
	t.Run("rigs", func(t *testing.T) {
		for i := range all {
			results[i].rig, results[i].heldOut = &all[i].rig, all[i].heldOut
			t.Run(all[i].name, func(t *testing.T) {
				t.Parallel()
				all[i].carryOut(t, weir, &results[i])
			})
		}
	})
	right := 0
	for i := range results {
		r := &results[i]
		t.Logf("%s: %s; machine full %.0f%%; %s; %s", r.name, r.word(), 100*r.full, strings.Join(r.says, " / "), r.control.String())
		for _, m := range r.missed {
			t.Logf("   MISSED: %s", m)
		}
		if r.word() == "right" {
			right++
		}
	}
	t.Logf("%d of %d rigs right", right, len(results))
	write()
}

// shortChallenge is a challenge of less than a minute, with a ceiling.
func shortChallenge() challengeRig {
	r := challengeRigs()[slices.IndexFunc(challengeRigs(), func(r challengeRig) bool { return r.name == "ceiling" })]
	r.plan.profile = "[{for: 12s, at: 50%}, {for: 36s, at: 100%}]"
	return r
}

// carryOut plays the rig.
func (r *challengeRig) carryOut(t *testing.T, weir string, res *challengeResult) {
	if why := lacks(r.needs); why != "" {
		res.skipped = why
		if !*fullFlag {
			labtest.Need(t, r.needs...)
		}
		t.Skip(why)
	}
	s := newStage(t, weir, mostChallenge)
	defer func() {
		res.missed, res.skipped = s.missed, s.skipped
		for _, x := range s.shown {
			text := x.challengeReports()
			if x.crowded() {
				text += "; (" + x.others() + ")"
			}
			res.says = append(res.says, text)
		}
		if *keepFlag != "" {
			s.save(filepath.Join(*keepFlag, r.name))
		}
	}()
	if *againFlag != "" {
		s.again(filepath.Join(*againFlag, r.name, "run-1"), r, res)
		return
	}
	r.playOn(s, res)
}

// again analyzes a run directory that was kept, and judges the result.
func (s *stage) again(dir string, of *challengeRig, res *challengeResult) {
	kept := filepath.Join(s.dir, "run-1")
	if err := os.CopyFS(kept, os.DirFS(dir)); err != nil {
		s.cannot("no run directory: %v", err)
	}
	out, _ := s.command(s.weir, "report", kept) // the result is in the findings
	f, err := readFindings(kept)
	s.must(err)
	run := &ran{findings: f, dir: kept, text: out}
	s.shown = append(s.shown, run)
	of.judge(&grid{stage: s}, run, res)
}

// judge holds the verdict and the control against the truth.
func (r *challengeRig) judge(g *grid, run *ran, res *challengeResult) {
	res.grade = g.links(run, r.limited, r.answers, r.free...)
	if run.findings == nil || run.Challenge == nil {
		return
	}
	res.full = g.machineFull(run)
	if r.control {
		res.control = g.control(run)
		if len(res.control.Errors) > 0 {
			most := slices.Max(res.control.Errors)
			g.expect(most < 0.03, "control: error of %.1f%% in a minute", 100*most)
			most = slices.Max(res.control.Overshoots)
			g.expect(most < 0.10, "control: overshoot of %.1f%%", 100*most)
		}
	}
	if r.after != nil {
		r.after(g, run)
	}
}

// playOn plays the rig on a stage.
func (r *challengeRig) playOn(s *stage, res *challengeResult) {
	g := &grid{stage: s, extra: map[string]siteSpec{}}
	if r.before != nil {
		r.before(g)
	}
	s.newGrid(g, r.specs, r.lines...)
	plan := r.plan
	plan.auth = g.auth
	plan.more += g.more
	b := s.begin(plan.text(g), how{verb: challengeVerb})
	done := make(chan struct{})
	if r.during != nil {
		go func() {
			defer close(done)
			r.during(g, b)
		}()
	} else {
		close(done)
	}
	run := b.wait()
	<-done
	r.judge(g, run, res)
	left := g.left()
	if r.keeps {
		left = foreignFiles(left)
	}
	s.expect(len(left) == 0, "%d files left at the sites, such as %s", len(left), fmt.Sprint(left[:min(3, len(left))]))
}

const challengeHead = "## Data challenges\n"

// aboutChallenges introduces the table.
const aboutChallenges = "Each rig is a data challenge of four minutes between four sites (`weir serve --third-party`, behind emulated " +
	"lines) on\neight links with targets of 1 Mbit/s, unless it says otherwise: a minute at half of the targets, then the whole. " +
	"AB is the link from\nA to B. A rig is *right* if each link that is held back has the right cause, all others hold their targets, and " +
	"nothing is left at the\nsites. The rules were not adjusted by the rigs that are held out (`other-`): they have " +
	"faults of other rigs elsewhere. Control is\n" +
	"measured where nothing limits and a minute has 50 files or more. weir requests the copies " +
	"itself (`direct`),\nunless a coordinator does.\n\n"

// A gradeSum counts the rigs by their outcomes.
type gradeSum struct{ right, played, unknown, certain int }

// sumOf counts the rigs that were held out, or the others.
func sumOf(results []challengeResult, heldOut bool) (n gradeSum) {
	for i := range results {
		r := &results[i]
		if r.skipped != "" || r.heldOut != heldOut {
			continue
		}
		n.played++
		n.certain += r.grade.certain
		switch r.word() {
		case "right":
			n.right++
		case "cannot tell":
			n.unknown++
		}
	}
	return n
}

// String returns the numbers in the form of the page.
func (n *gradeSum) String() string {
	return fmt.Sprintf("%d of %d rigs right, %d cannot tell, %d verdicts wrong and certain.", n.right, n.played, n.unknown, n.certain)
}

// renderChallenges writes the section of data challenges.
func renderChallenges(about machine, results []challengeResult) string {
	var b strings.Builder
	known, heldOut := sumOf(results, false), sumOf(results, true)
	fmt.Fprintf(&b, "%s\n**%s** Held out: **%s** The bars are 19 of 20 and 0.\n\n%s", challengeHead, &known, &heldOut, aboutChallenges)
	kept := ""
	if *againFlag != "" {
		kept = " The challenges had been carried out before, and were analyzed again with that commit."
	}
	fmt.Fprintf(&b, "Run on %s with commit %s on a machine with %d cores and a load average of %s at the start. "+
		"`make rigs AREA=challenge`\nrepeats it.%s\n\n", about.date, about.commit, about.cores, about.load, kept)
	b.WriteString("| rig | situation and truth | result | weir reports |\n|---|---|---|---|\n")
	for i := range results {
		r := &results[i]
		words := []string{r.word(), fmt.Sprintf("machine full %.0f%%", 100*r.full)}
		if text := r.control.String(); text != "" {
			words = append(words, text)
		}
		words = append(words, r.missed...)
		fmt.Fprintf(&b, "| %s | %s<br>*%s* | %s | %s |\n", r.name, cell(r.situation), cell(r.truth), cells(words), cells(r.says))
	}
	return b.String() + "\n"
}

// writeChallenges replaces the section of data challenges in the page at path.
func writeChallenges(path string, about machine, results []challengeResult) error {
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	before, after := splitSection(string(text), challengeHead)
	return os.WriteFile(path, []byte(before+renderChallenges(about, results)+after), 0o644)
}

// withSections returns a page of rigs of load tests with the sections of the other areas of the page
// at path, if it has them.
func withSections(text, path string) string {
	old, _ := os.ReadFile(path) // "" if it does not exist
	for _, head := range []string{challengeHead, diagnoseHead} {
		before, after := splitSection(string(old), head)
		section := strings.TrimSuffix(strings.TrimPrefix(string(old), before), after)
		before, after = splitSection(text, head)
		text = before + section + after
	}
	return text
}

// splitSection returns the text before and after the section with a head. Without such a section it
// belongs before that of healthy runs, or at the end.
func splitSection(text, head string) (before, after string) {
	const next = "## Healthy runs\n"
	before, after, found := strings.Cut(text, head)
	if !found {
		before, after, found = strings.Cut(text, next)
		if found {
			return before, next + after
		}
		return before, ""
	}
	if i := strings.Index(after, "\n## "); i >= 0 {
		return before, after[i+1:]
	}
	return before, ""
}

// The section of data challenges takes the place of the last one, and stays when the rest of the page
// is written again.
func TestChallengeSection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "truth.md")
	all := challengeRigs()
	results := []challengeResult{{result: result{rig: &all[0].rig}}, {result: result{rig: &all[1].rig, missed: []string{"a|b"}}}}
	const rest = "# What\n\n## Rigs\n\n| a |\n\n## Healthy runs\n\nb\n\n## False alarms\n\nNone.\n"
	require.NoError(t, os.WriteFile(path, []byte(rest), 0o600))
	for range 2 {
		require.NoError(t, writeChallenges(path, machine{}, results))
	}
	text := string(require.File(t, path))
	if strings.Count(text, challengeHead) != 1 ||
		!strings.Contains(text, "**1 of 2 rigs right, 0 cannot") || !strings.Contains(text, `**wrong**<br>machine full 0%<br>a\|b`) {
		t.Errorf("not the section of one rig that is right and one that is wrong:\n%s", text)
	}
	if got := withSections(rest, path); got != text {
		t.Errorf("the section has changed with the rest of the page:\n%s\nbefore:\n%s", got, text)
	}
	written := string(require.File(t, "../../docs/truth.md"))
	for _, r := range all {
		if row := fmt.Sprintf("\n| %s | %s<br>*%s* | ", r.name, cell(r.situation), cell(r.truth)); !strings.Contains(written, row) {
			t.Errorf("docs/truth.md lacks %q: make rigs AREA=challenge", row)
		}
	}
	before, after := splitSection(text, challengeHead)
	if before+after != rest {
		t.Errorf("the rest of the page has changed:\n%s%s", before, after)
	}
}

// Each rig of data challenges has a situation, a truth, and answers for its links.
func TestChallengeNames(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range challengeRigs() {
		if seen[r.name] || r.name == "" || r.situation == "" || r.truth == "" || (r.limited == "") != (r.answers == "") {
			t.Errorf("%q: not complete, or twice", r.name)
		}
		seen[r.name] = true
	}
	if len(seen) < 20 {
		t.Errorf("%d rigs, at least 20 are wanted", len(seen))
	}
}
