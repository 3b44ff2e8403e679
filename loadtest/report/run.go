package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis"
)

// Bounds of the amount of text on a page.
const (
	mostRows   = 400
	mostEvents = 100
	mostText   = 64 << 10 // bytes of a plan or an environment
)

// runChapter describes the settings of the run, so that it can be repeated.
func runChapter(f *analysis.Findings, s *analysis.Series) chapter {
	c := chapter{ID: "run", Title: "The run", PageOnly: true}
	if s != nil {
		c.Parts = filled(commandSection(s), thresholdSection(f), environmentSection(s), programSection(s), eventSection(s), planSection(s),
			textSection("Everything that is known of the machine", s.About))
	}
	return c
}

// commandSection shows the command line of the run.
func commandSection(s *analysis.Series) section {
	if len(s.About.Command) == 0 {
		return section{}
	}
	var words []string
	for _, word := range s.About.Command {
		words = append(words, quote(word))
	}
	return section{ID: "command", Title: "How it was called", Open: true, Text: say.Plain(strings.Join(words, " ")),
		Note: "The same command repeats the run; the seed in the plan fixes all random choices. Passwords in addresses are removed."}
}

// quote returns a word as one word of a shell.
func quote(word string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@,+%", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !safe(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func thresholdWord(x analysis.Judgment) string {
	return map[bool]string{true: "met", false: "not met"}[x.Met]
}

// thresholdSection lists the thresholds and their results.
func thresholdSection(f *analysis.Findings) section {
	t := section{ID: "thresholds", Title: "Thresholds", table: table{Head: heads("<result", "<threshold", "~detail")}}
	for _, x := range f.Thresholds {
		t.row(false, thresholdWord(x), x.Threshold, x.Detail)
		t.paint(0, "l "+map[bool]string{true: analysis.OK, false: analysis.Fail}[x.Met])
	}
	return t
}

// checkChapter lists the checks, and the checks that were impossible.
func checkChapter(f *analysis.Findings) chapter {
	s := section{Caption: "Checks", table: table{Head: heads("<status", "<check", "~detail")}}
	for i := range f.Validity.Checks {
		c := &f.Validity.Checks[i]
		if !f.Validity.Noted(c) {
			s.row(false, c.Status, c.Name, c.Text())
			s.paint(0, "l "+c.Status)
		}
	}
	notes := section{ID: "notes", Title: "What could not be checked", Note: "This says nothing against the result, and nothing for it.",
		table: table{Head: heads("<check", "~not checked, and what would check it")}}
	for i := range f.Validity.Notes {
		notes.row(false, f.Validity.Notes[i].Check, f.Validity.Notes[i].Text())
	}
	c := chapter{ID: "checks", Title: "Checks", Brief: checkWords(f), Parts: append([]section{s}, filled(notes)...),
		Note: "A check that warns has evidence that the numbers may be wrong, or too little data: the result is suspect. " +
			"One that fails makes it invalid. docs/methods.md tells what each of them catches."}
	return c
}

func eventSection(series *analysis.Series) section {
	s := section{Title: "Events", table: table{Head: heads("<time", "<event", "step", "<class", "~text")}}
	for i, e := range series.Events {
		if i >= mostEvents {
			s.Title = fmt.Sprintf("Events (the first %d of %d)", mostEvents, len(series.Events))
			break
		}
		class := ""
		if e.Class != 0 {
			class = e.Class.String()
		}
		s.row(false, clock(e.Time), string(e.Kind), fmt.Sprint(e.Step), class, cutText(e.Text, mostErrorText))
	}
	return s
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// surroundings are the properties of a machine that are shown, in their order; other keys appear
// only in the text.
type surroundings struct {
	Host       string   `json:"hostname"`
	System     string   `json:"operating_system"`
	Kernel     string   `json:"kernel"`
	Arch       string   `json:"architecture"`
	CPU        string   `json:"cpu_model"`
	Cores      int      `json:"cores"`
	Used       int      `json:"cores_used"`
	Quota      float64  `json:"cpu_quota_cores"`
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

// environmentSection describes the machine of the clients in words.
func environmentSection(s *analysis.Series) section {
	about := &s.About
	t := section{ID: "environment", Title: "Where the clients ran", Open: true, table: table{Head: heads("<property", "~value")}}
	// add skips empty parts, and rows without parts.
	add := func(known bool, name string, parts ...string) {
		parts = slices.DeleteFunc(parts, func(w string) bool { return w == "" })
		if known && len(parts) > 0 {
			t.row(false, name, strings.Join(parts, ", "))
		}
	}
	format := func(known bool, format string, args ...any) string {
		if !known {
			return ""
		}
		return fmt.Sprintf(format, args...)
	}
	add(true, "weir", strings.TrimSpace(about.Weir+" ("+about.Go+")"))
	var e surroundings
	var odd *json.UnmarshalTypeError // one value of another kind, the rest is there
	if err := json.Unmarshal(about.Environment, &e); err != nil && !errors.As(err, &odd) {
		return t // the text contains the available data
	}
	cores := format(e.Cores > 0, "%s", say.Plural(e.Cores, "core")) +
		format(e.Cores > 0 && e.Used > 0 && e.Used != e.Cores, ", %d of them used", e.Used) +
		format(e.Quota > 0, ", CPU quota of %.3g", e.Quota)
	add(true, "machine", e.Host, e.Virtual)
	add(true, "system", e.System, e.Kernel, e.Arch)
	add(true, "CPU", e.CPU, cores, format(e.Governor != "", "governor %s", e.Governor))
	add(e.Memory > 0, "memory", amount(e.Memory))
	add(true, "clock", e.Clock, format(about.Clock.Read > 0, "reading it costs %s", unit.Seconds(about.Clock.Read)))
	add(e.Congestion != "", "TCP", fmt.Sprintf("%s; buffers up to %s received and %s sent; at most %d connections wait to be accepted",
		e.Congestion, amount(e.Receive[2]), amount(e.Send[2]), e.Backlog))
	add(e.PortHigh > e.PortLow, "ports for clients", fmt.Sprintf("%d to %d", e.PortLow, e.PortHigh))
	add(e.FilesSoft > 0, "open files", fmt.Sprintf("at most %d (hard limit %d)", e.FilesSoft, e.FilesHard))
	add(about.Discard, "payload", "may have been counted without being copied to memory")
	return t
}

// programSection lists the versions that the servers reported.
func programSection(s *analysis.Series) section {
	t := section{ID: "programs", Title: "Servers that reported their version",
		table: table{Head: heads("<server", "<kind", "<program", "<version")}}
	for _, p := range s.Programs {
		t.row(false, p.Server, p.Kind, p.Name, p.Version)
	}
	return t
}

// planSection shows the plan, in which nothing is left to decide.
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
	t.Text = printable(string(text))
	return t
}

func textSection(title string, v any) section {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		b = []byte(err.Error())
	}
	return section{Title: title, Text: printable(string(b))}
}

// printable returns the beginning of a text, with its line breaks.
func printable(s string) string {
	if len(s) > mostText {
		s = s[:mostText] + "\n... (cut off here; the run directory has all of it)"
	}
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = say.Plain(lines[i])
	}
	return strings.Join(lines, "\n")
}
