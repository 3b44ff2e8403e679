package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"weir/analysis"
	"weir/internal/say"
	"weir/internal/unit"
)

// commandSection is how the run was called.
func commandSection(s *analysis.Series) section {
	if len(s.About.Command) == 0 {
		return section{}
	}
	var words []string
	for _, word := range s.About.Command {
		words = append(words, quote(word))
	}
	return section{ID: "command", Title: "How it was called", Note: "The same command does it again; what was drawn by chance follows from the seed in the plan. Passwords in addresses are blotted out.",
		Text: say.Plain(strings.Join(words, " "))}
}

// quote makes one word for a shell.
func quote(word string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@,+%", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !safe(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// thresholdSection is what was asked for, and whether it was met.
func thresholdSection(f *analysis.Findings) section {
	t := section{ID: "thresholds", Title: "Thresholds", table: table{Head: heads("<", "<threshold", "~detail")}}
	for _, x := range f.Thresholds {
		result, class := "not met", "l fail"
		if x.Met {
			result, class = "met", "l ok"
		}
		t.row(false, result, x.Threshold, x.Detail)
		t.paint(0, class)
	}
	return t
}

// surroundings are what is told of a machine, in the order in which it is
// shown; other keys are left to the text.
type surroundings struct {
	Host       string   `json:"hostname"`
	System     string   `json:"operating_system"`
	Kernel     string   `json:"kernel"`
	Arch       string   `json:"architecture"`
	CPU        string   `json:"cpu_model"`
	Cores      int      `json:"cores"`
	Allowed    int      `json:"cores_allowed"`
	Used       int      `json:"cores_used"`
	Governor   string   `json:"cpu_governor"`
	Memory     int64    `json:"memory_bytes"`
	Virtual    string   `json:"virtualization"`
	Clock      string   `json:"clock_source"`
	Congestion string   `json:"tcp_congestion_control"`
	Receive    [3]int64 `json:"tcp_rmem_bytes"`
	Send       [3]int64 `json:"tcp_wmem_bytes"`
	Backlog    int64    `json:"somaxconn"`
	PortLow    int64    `json:"ephemeral_port_low"`
	PortHigh   int64    `json:"ephemeral_port_high"`
	FilesSoft  uint64   `json:"open_files_soft"`
	FilesHard  uint64   `json:"open_files_hard"`
}

// environmentSection tells on what machine the clients ran, in words.
func environmentSection(s *analysis.Series) section {
	about := &s.About
	t := section{ID: "environment", Title: "Where the clients ran", table: table{Head: heads("<", "~")}}
	add := func(name, text string) {
		if text != "" {
			t.row(false, name, text)
		}
	}
	add("weir", strings.TrimSpace(about.Weir+" ("+about.Go+")"))
	var e surroundings
	var odd *json.UnmarshalTypeError // one value of another kind, the rest is there
	if err := json.Unmarshal(about.Environment, &e); err != nil && !errors.As(err, &odd) {
		return t // the text has what there is
	}
	add("machine", joinWords(e.Host, e.Virtual))
	add("system", joinWords(e.System, e.Kernel, e.Arch))
	add("CPU", joinWords(e.CPU, coresText(&e), prefixed("governor ", e.Governor)))
	if e.Memory > 0 {
		add("memory", unit.Bytes(float64(e.Memory)))
	}
	add("clock", joinWords(e.Clock, clockText(s)))
	if e.Congestion != "" {
		add("TCP", fmt.Sprintf("%s; buffers up to %s received and %s sent; at most %d connections wait to be accepted", e.Congestion,
			unit.Bytes(float64(e.Receive[2])), unit.Bytes(float64(e.Send[2])), e.Backlog))
	}
	if e.PortHigh > e.PortLow {
		add("ports for clients", fmt.Sprintf("%d to %d", e.PortLow, e.PortHigh))
	}
	if e.FilesSoft > 0 {
		add("open files", fmt.Sprintf("at most %d (hard limit %d)", e.FilesSoft, e.FilesHard))
	}
	if about.Discard {
		add("payload", "may have been counted without being copied to memory")
	}
	return t
}

func coresText(e *surroundings) string {
	if e.Cores == 0 {
		return ""
	}
	text := say.Plural(e.Cores, "core")
	if e.Used > 0 && e.Used != e.Cores {
		text += fmt.Sprintf(", %d of them used", e.Used)
	}
	return text
}

func clockText(s *analysis.Series) string {
	if s.About.Clock.Read <= 0 {
		return ""
	}
	return "a look at it costs " + unit.Seconds(s.About.Clock.Read)
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// joinWords joins what is not empty.
func joinWords(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", ")
}

// programSection lists the versions of the servers that were seen.
func programSection(s *analysis.Series) section {
	t := section{ID: "programs", Title: "Servers that told their version", table: table{Head: heads("<server", "<kind", "<program", "<version")}}
	for _, p := range s.Programs {
		t.row(false, p.Server, p.Kind, p.Name, p.Version)
	}
	return t
}

// planSection is what was asked for, with nothing left to decide.
func planSection(s *analysis.Series) section {
	t := textSection("Plan", s.Plan)
	b, err := json.Marshal(s.Plan)
	if err != nil {
		return t
	}
	text, err := yaml.JSONToYAML(b)
	if err != nil {
		return t
	}
	t.Note = "What was asked for, with everything that the scenario left open filled in."
	t.Text = printable(cutBytes(string(text)))
	return t
}

// cutBytes keeps as much as a page shows of a text.
func cutBytes(text string) string {
	if len(text) <= mostText {
		return text
	}
	return text[:mostText] + "\n... (cut off here; the run directory has all of it)"
}
