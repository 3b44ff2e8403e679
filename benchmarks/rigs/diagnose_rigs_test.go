package rigs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/link"
)

var (
	timesFlag   = flag.Int("times", 5, "how often each rig of area diagnose is diagnosed")
	foreignFlag = flag.Float64("foreign", 0, "`SHARE` of each core that another program uses beside the rigs of area diagnose, such as 0.3")
	checkFlag   = flag.Bool("check", false, "only check that the situations of area diagnose exist, with independent tools")
	apartFlag   = flag.String("apart", "", "rig of area diagnose that this process plays in its own namespaces")
	resultFlag  = flag.String("result", "", "`FILE` for the result of -apart")
)

// A diagnoseRig is a transfer whose cause of slowness is known.
type diagnoseRig struct {
	name      string
	situation string
	cause     string // the truth: "cause" or "cause/detail", further right answers separated by |
	second    string // a smaller cause that is there as well, for readers
	needs     []string
	line      link.Spec
	play      func(w *world) // makes the situation, checks it, and sets the target
}

// diagnoseRigs returns the rigs of transfers, in the order of the page.
func diagnoseRigs() []diagnoseRig {
	return slices.Concat(diagnoseLineRigs(), diagnoseDiskRigs(), diagnoseServerRigs(), diagnoseSetupRigs(), diagnoseHereRigs(),
		diagnoseTwoRigs())
}

// A diagnosed is the result of one rig, which is kept in a file.
type diagnosed struct {
	Rig     string            `json:"rig"`
	Weir    string            `json:"weir"` // sha256 of the program
	Foreign float64           `json:"foreign"`
	Checks  []string          `json:"checks"` // observations of independent tools
	Absent  []string          `json:"absent,omitempty"`
	Skipped string            `json:"skipped,omitempty"`
	Failed  string            `json:"failed,omitempty"` // the reason for which the rig itself failed
	Answers []json.RawMessage `json:"answers"`          // the diagnoses
}

// A verdict is the part of a diagnosis that is judged.
type verdict struct {
	Cause     string  `json:"cause"`
	Detail    string  `json:"detail"`
	Certainty string  `json:"certainty"`
	Share     float64 `json:"share"`
}

func verdictOf(answer json.RawMessage) verdict {
	var d struct {
		Verdict verdict `json:"verdict"`
		Error   string  `json:"error"`
	}
	_ = json.Unmarshal(answer, &d) // an answer that is no diagnosis has no cause
	if d.Error != "" {
		return verdict{Cause: "error", Detail: d.Error}
	}
	return d.Verdict
}

// String returns "cause/detail", or "cannot tell".
func (v verdict) String() string {
	if v.unknown() {
		return "cannot tell"
	}
	if v.Detail == "" {
		return v.Cause
	}
	return v.Cause + "/" + v.Detail
}

func (v verdict) unknown() bool { return v.Cause == "" || v.Certainty == "cannot tell" }

// right reports whether the verdict is the truth of the rig. A truth without a detail accepts each.
func (r *diagnoseRig) right(v verdict) bool {
	for want := range strings.SplitSeq(r.cause, "|") {
		if want == v.String() || want == v.Cause {
			return true
		}
	}
	return false
}

// A score counts the diagnoses of rigs.
type score struct{ right, unknown, wrong int }

func (r *diagnoseRig) score(d *diagnosed) (s score) {
	for _, a := range d.Answers {
		switch v := verdictOf(a); {
		case v.unknown():
			s.unknown++
		case r.right(v):
			s.right++
		default:
			s.wrong++
		}
	}
	return s
}

// kept returns the folder for the results, and whether nothing is to be played.
func kept() (dir string, again bool) {
	switch {
	case *againFlag != "":
		return *againFlag, true
	case *keepFlag != "":
		return *keepFlag, false
	}
	return filepath.Join(os.TempDir(), "weir-diagnose-rigs"), false
}

// TestDiagnoseRigs diagnoses each rig as often as -times. Results are kept in a file for each rig
// (-keep): a rig that ended is not played again with the same weir. -again judges them anew.
func TestDiagnoseRigs(t *testing.T) {
	tier.Quiet(t, "transfers whose cause of slowness is known")
	if *areaFlag != "" && *areaFlag != diagnoseArea {
		t.Skip("not of area " + *areaFlag)
	}
	if !*fullFlag && !*checkFlag {
		t.Skip("takes hours: -full plays them")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can make the namespaces")
	}
	weir := builtWeir(t)
	sum, err := os.ReadFile(weir)
	require.NoError(t, err)
	hash := sha256.Sum256(sum)
	dir, again := kept()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	about := aboutMachine(t.Context())
	all := diagnoseRigs()
	results := make([]*diagnosed, len(all))
	if *foreignFlag > 0 {
		newStage(t, weir, 10*time.Hour).neighbor(*foreignFlag)
	}
	t.Run("rigs", func(t *testing.T) {
		for i := range all {
			t.Run(all[i].name, func(t *testing.T) {
				t.Parallel()
				results[i] = all[i].result(t, filepath.Join(dir, all[i].name+".json"), weir, hex.EncodeToString(hash[:8]), again)
				all[i].log(t, results[i])
			})
		}
	})
	results = slices.DeleteFunc(results, func(d *diagnosed) bool { return d == nil })
	text := renderDiagnoses(about, results)
	t.Log(text)
	if *outFlag != "" && !*checkFlag && t.Context().Err() == nil {
		require.NoError(t, writeDiagnoses(*outFlag, text))
	}
}

// result returns the kept result of a rig, or plays it and keeps the result.
func (r *diagnoseRig) result(t *testing.T, path, weir, hash string, again bool) *diagnosed {
	var d diagnosed
	if b, err := os.ReadFile(path); err == nil && json.Unmarshal(b, &d) == nil {
		if again || d.Weir == hash && d.Foreign == *foreignFlag && len(d.Answers) >= *timesFlag && !*checkFlag {
			return &d
		}
	}
	if again {
		t.Skip("no result in " + path)
	}
	if why := lacks(append(r.needs, "ping", "curl", "iperf3", "iptables", "ip")); why != "" {
		return &diagnosed{Rig: r.name, Skipped: why}
	}
	d = diagnosed{Rig: r.name, Weir: hash, Foreign: *foreignFlag}
	r.inChild(t, weir, hash, path+".new", *checkFlag, &d)
	if d.Failed == "" && !*checkFlag {
		b, err := json.MarshalIndent(d, "", " ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, b, 0o644))
	}
	return &d
}

// inChild plays the rig in a process with namespaces of its own.
func (r *diagnoseRig) inChild(t *testing.T, weir, hash, path string, check bool, d *diagnosed) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "-test.run", "^TestDiagnoseApart$", "-test.v", "-apart", r.name, "-result", path, "-weir", weir, "-times",
		fmt.Sprint(*timesFlag), "-full", fmt.Sprintf("-check=%v", check))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	in, err := cmd.StdinPipe() // its end ends the rig
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	stop := context.AfterFunc(t.Context(), func() { _ = in.Close() })
	err = cmd.Wait()
	stop()
	defer os.Remove(path)
	b, e := os.ReadFile(path)
	if e == nil {
		e = json.Unmarshal(b, d)
		d.Rig, d.Weir, d.Foreign = r.name, hash, *foreignFlag
	}
	if e != nil || err != nil && d.Skipped == "" {
		d.Failed = fmt.Sprintf("%v: %s", err, out.String())
	}
}

// log reports the result of a rig. A situation that was not there fails the rig.
func (r *diagnoseRig) log(t *testing.T, d *diagnosed) {
	for _, c := range d.Checks {
		t.Log(c)
	}
	for i, a := range d.Answers {
		v := verdictOf(a)
		t.Logf("diagnosis %d: %s, %s, %.0f%%: right: %v", i+1, v, v.Certainty, 100*v.Share, r.right(v))
	}
	if d.Skipped != "" {
		t.Skip(d.Skipped)
	}
	if d.Failed != "" || len(d.Absent) > 0 {
		t.Errorf("the rig itself failed: %s %s", strings.Join(d.Absent, "; "), d.Failed)
	}
}

// mostDiagnosis limits the time of one diagnosis.
const mostDiagnosis = 3 * time.Minute

// TestDiagnoseApart plays the rig of -apart. This process has namespaces of its own.
func TestDiagnoseApart(t *testing.T) {
	if *apartFlag == "" {
		t.Skip("TestDiagnoseRigs starts it")
	}
	all := diagnoseRigs()
	r := &all[slices.IndexFunc(all, func(r diagnoseRig) bool { return r.name == *apartFlag })]
	s := newStage(t, *weirFlag, time.Duration(*timesFlag+2)*mostDiagnosis)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	s.ctx = ctx
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var d diagnosed
	defer func() { // also if the rig ended itself by Fatal or Skip
		d.Skipped = s.skipped
		b, err := json.Marshal(d)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(*resultFlag, b, 0o644))
	}()
	w := s.newWorld(r.line)
	defer func() { d.Checks, d.Absent = w.sure, w.absent }()
	r.play(w)
	for n := 0; n < *timesFlag && !*checkFlag && len(w.absent) == 0 && ctx.Err() == nil; n++ {
		d.Answers = append(d.Answers, w.diagnose())
	}
}

// diagnose runs weir diagnose on the target and returns its JSON; a failure is {"error": text}.
func (w *world) diagnose() json.RawMessage {
	if w.each != nil {
		w.each()
	}
	argv := append(slices.Clone(w.here), w.weir, "diagnose", w.target, "--json")
	begin := time.Now()
	out, text, code := w.at(append(argv, w.flags...)...)
	if json.Valid([]byte(out)) {
		return json.RawMessage(out)
	}
	b, err := json.Marshal(map[string]string{"error": fmt.Sprintf("exit %d after %s: %s", code,
		time.Since(begin).Round(time.Second), text)})
	w.must(err)
	return b
}

const diagnoseHead = "## One transfer\n"

// renderDiagnoses writes the section of diagnoses: the confusion matrix and a row for each rig.
func renderDiagnoses(about machine, results []*diagnosed) string {
	rigs := map[string]*diagnoseRig{}
	for _, r := range diagnoseRigs() {
		rigs[r.name] = &r
	}
	var total score
	said := map[string]map[string]int{}
	var rows strings.Builder
	foreign := 0.0
	for _, d := range results {
		r := rigs[d.Rig]
		if r == nil {
			continue
		}
		foreign = max(foreign, d.Foreign)
		truth, _, _ := strings.Cut(r.cause, "|")
		s, says := r.score(d), map[string]int{}
		total = score{total.right + s.right, total.unknown + s.unknown, total.wrong + s.wrong}
		for _, a := range d.Answers {
			v := verdictOf(a)
			says[v.String()]++
			answer := v.Cause
			if v.unknown() {
				answer = "cannot tell"
			} else if r.right(v) {
				answer, _, _ = strings.Cut(truth, "/")
			}
			of, _, _ := strings.Cut(truth, "/")
			if said[of] == nil {
				said[of] = map[string]int{}
			}
			said[of][answer]++
		}
		rows.WriteString(diagnosisRow(r, d, s, says))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n**%d of %d diagnoses right, %d cannot tell, %d wrong.** The bars are 143 of 150 right and 3 wrong.\n\n%s",
		diagnoseHead, total.right, total.right+total.unknown+total.wrong, total.unknown, total.wrong, aboutDiagnoses)
	fmt.Fprintf(&b, "Run on %s with commit %s on a machine with %d cores and a load average of %s at the start", about.date, about.commit,
		about.cores, about.load)
	if foreign > 0 {
		fmt.Fprintf(&b, ", beside a program that uses %.0f%% of each core", 100*foreign)
	}
	b.WriteString(". `make rigs AREA=diagnose`\nrepeats it.\n\n")
	confusion(&b, said)
	b.WriteString("| rig | situation and truth | other tools | weir reports |\n|---|---|---|---|\n" + rows.String())
	return b.String() + "\n"
}

// writeDiagnoses replaces the section of diagnoses in the page at path.
func writeDiagnoses(path, section string) error {
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	before, after := splitSection(string(text), diagnoseHead)
	return os.WriteFile(path, []byte(before+section+after), 0o644)
}

const aboutDiagnoses = "Each rig is a file at a real server behind an emulated line, and one known cause for which it is slow; some " +
	"have a " +
	"smaller second cause.\n`weir diagnose` is run in the network namespace of the client. A row of the matrix has the diagnoses of " +
	"the rigs " +
	"with one true cause.\n\n"

func diagnosisRow(r *diagnoseRig, d *diagnosed, s score, says map[string]int) string {
	truth := strings.ReplaceAll(r.cause, "|", " or ")
	if r.second != "" {
		truth += "; less: " + r.second
	}
	var words []string
	for _, k := range sortedKeys(says) {
		words = append(words, fmt.Sprintf("%s (%d)", k, says[k]))
	}
	if s.wrong > 0 {
		words = append(words, fmt.Sprintf("**%d wrong**", s.wrong))
	}
	if d.Skipped != "" {
		words = append(words, "skipped: "+d.Skipped)
	}
	if len(d.Absent) > 0 || d.Failed != "" {
		words = append(words, "the rig itself failed")
	}
	return fmt.Sprintf("| %s | %s<br>*%s* | %s | %s |\n", r.name, cell(r.situation), cell(truth), cells(d.Checks), cells(words))
}

// confusion writes the confusion matrix.
func confusion(b *strings.Builder, said map[string]map[string]int) {
	columns := map[string]int{}
	for _, row := range said {
		for k, n := range row {
			columns[k] += n
		}
	}
	keys := sortedKeys(columns)
	fmt.Fprintf(b, "| truth \\ weir | %s |\n|---|%s\n", strings.Join(keys, " | "), strings.Repeat("---:|", len(keys)))
	for _, truth := range sortedKeys(said) {
		fmt.Fprintf(b, "| %s |", truth)
		for _, k := range keys {
			if n := said[truth][k]; n > 0 {
				fmt.Fprintf(b, " %d |", n)
			} else {
				b.WriteString(" |")
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
