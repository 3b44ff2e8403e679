package rigs

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab/labtest"
)

var (
	weirFlag    = flag.String("weir", "", "absolute `PATH` of the weir to try (default: it is built)")
	fullFlag    = flag.Bool("full", false, "play all rigs, ask other programs as well, and try healthy runs")
	healthyFlag = flag.Int("healthy", 200, "how many healthy runs -full tries for false alarms")
	outFlag     = flag.String("out", "", "`FILE` to write the page of -full to")
	areaFlag    = flag.String("area", "", "`AREA` of the rigs to play: load, challenge or diagnose; default: all")
	againFlag   = flag.String("again", "", "`DIR` of -keep whose data challenges and diagnoses are judged again instead of being "+
		"carried out")
	keepFlag = flag.String("keep", "", "`DIR` to keep the run directories of missed rigs, and diagnoses, in")
)

func TestMain(m *testing.M) {
	child := map[string]func(args []string, out io.Writer) error{faultyWord: runFaulty, busyWord: runBusy, siteWord: runSite,
		moverWord: runMover}
	if len(os.Args) > 1 && child[os.Args[1]] != nil { // rigs run this program as servers
		if err := child[os.Args[1]](os.Args[2:], os.Stdout); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[1], err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// Areas of rigs.
const (
	loadArea      = "load"
	challengeArea = "challenge"
	diagnoseArea  = "diagnose"
)

// A rig is a situation whose truth is known.
type rig struct {
	name      string
	situation string   // the servers, faults and loads, for readers
	truth     string   // the facts that hold by construction, for readers
	needs     []string // programs
	short     bool     // played without -full
	play      func(s *stage)
}

// rigs returns all rigs, in the order of the page.
func rigs() []rig {
	return slices.Concat(errorRigs(), outageRigs(), stallRigs(), limitRigs(), moreLimitRigs(), generatorRigs(), noiseRigs(), contentRigs(),
		serverRigs(), driftRigs(), backendRigs(), commandRigs())
}

// A result is the outcome of a rig.
type result struct {
	*rig
	naive   []string // the results of other tools, or of totals alone
	says    []string // weir's reports of its runs
	missed  []string // expectations that do not hold
	skipped string   // the reason why it could not be run here
}

// caught reports whether the rig was played and all its expectations hold.
func (r *result) caught() bool { return r.skipped == "" && len(r.missed) == 0 }

// longest is the longest duration of a rig, or of a healthy run.
const longest = 100 * time.Second

// TestRigs plays the rigs of the short form, or with -full all rigs, and then writes the page. A
// missed rig fails the short form; on the page its row is marked as wrong.
func TestRigs(t *testing.T) {
	tier.Quiet(t, "situations with a known truth")
	tier.Slow(t, "takes a minute")
	if *areaFlag != "" && *areaFlag != loadArea {
		t.Skip("not of area " + *areaFlag)
	}
	weir := builtWeir(t)
	p := page{about: aboutMachine(t.Context())}
	for _, r := range rigs() {
		if !r.short && !*fullFlag {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			p.results = append(p.results, result{rig: &r})
			play(t, weir, &p.results[len(p.results)-1])
		})
	}
	if !*fullFlag {
		return
	}
	t.Run("healthy", func(t *testing.T) { p.healthy = tryHealthy(t, weir) })
	caught, missed := p.count()
	t.Logf("%d of %d rigs caught; %d healthy runs, %d false alarms", caught, caught+missed, len(p.healthy), p.alarms())
	if *outFlag != "" && t.Context().Err() == nil {
		require.NoError(t, os.WriteFile(*outFlag, []byte(withSections(p.render(), *outFlag)), 0o644))
	}
}

// builtWeir returns the path of the program to try.
func builtWeir(t *testing.T) string {
	t.Helper()
	if *weirFlag != "" {
		return *weirFlag
	}
	weir := filepath.Join(t.TempDir(), "weir")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", weir, "weir/cmd/weir").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return weir
}

// play plays one rig.
func play(t *testing.T, weir string, res *result) {
	if why := lacks(res.needs); why != "" {
		res.skipped = why
		if !*fullFlag {
			labtest.Need(t, res.needs...)
		}
		t.Skip(why)
	}
	s := newStage(t, weir, longest)
	defer func() { // also if a rig ended itself by Fatal or Skip
		res.naive, res.says, res.missed, res.skipped = s.naive, s.reports(), s.missed, s.skipped
		if len(s.missed) > 0 && *keepFlag != "" {
			s.save(filepath.Join(*keepFlag, res.name))
		}
		for _, m := range res.missed {
			if *fullFlag || res.skipped != "" {
				t.Logf("MISSED: %s (%s)", m, strings.Join(res.says, "; "))
			} else {
				t.Errorf("%s: %s (%s)", res.truth, m, strings.Join(res.says, "; "))
			}
		}
	}()
	res.play(s)
}

// Names are unique, and each rig has a situation, a truth and a function.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rigs() {
		if seen[r.name] || r.name == "" || r.situation == "" || r.truth == "" || r.play == nil {
			t.Errorf("%q: not complete, or twice", r.name)
		}
		seen[r.name] = true
	}
	if len(seen) < 40 {
		t.Errorf("%d rigs, at least 40 are wanted", len(seen))
	}
}
