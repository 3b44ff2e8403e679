package trial

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"weir/internal/unit"
	"weir/transfer"
)

// A Scenario is what is tried on sites of this machine, case by case, and what is
// expected of it. docs/transfer-demo.md describes its YAML.
type Scenario struct {
	Name   string   `yaml:"name"`
	Test   string   `yaml:"test"`    // of the seed, as in "1 and 2"
	About  string   `yaml:"about"`   // a sentence
	Sites  []string `yaml:"sites"`   // that are started
	AtOnce int      `yaml:"at_once"` // copies that a link may have at once, and a site; 0: the scheduler decides
	Cases  []Case   `yaml:"cases"`

	// Patience is for how long files wait for sites that are all down, before they
	// fail; 0 is a day.
	Patience unit.Duration `yaml:"patience"`
}

// A Case is one thing that is tried.
type Case struct {
	Name     string          `yaml:"name"`
	Files    int             `yaml:"files"`
	Size     Size            `yaml:"size"` // of each file
	At       map[string]Span `yaml:"at"`   // which files a site has, numbered from 1
	Missing  []int           `yaml:"missing"`
	To       string          `yaml:"to"`
	Mode     transfer.Mode   `yaml:"mode"`
	Requests int             `yaml:"requests"` // to which the files are dealt; 0 is one
	Open     int             `yaml:"open"`     // requests that are open at once; 0: all of them
	Tries    int             `yaml:"tries"`    // of a file
	Events   []Change        `yaml:"events"`
	Expect   Expect          `yaml:"expect"`
}

// A Change is something that happens to a site in the middle of a case.
type Change struct {
	After int    `yaml:"after"` // files have arrived
	Off   string `yaml:"off"`   // the site that is switched off, as by a power cut
	On    string `yaml:"on"`    // the site that is started again
}

// Expect is what must come out. A range is one number or two, as in 3-9.
type Expect struct {
	Status  transfer.Status `yaml:"status"` // of each request
	Arrived Span            `yaml:"arrived"`
	Named   Span            `yaml:"named"`  // files that have not arrived: each has a reason
	Reason  string          `yaml:"reason"` // each of these reasons contains this
	From    map[string]Span `yaml:"from"`   // files that came from a site
}

// A Size is what files have in a small trial, for minutes and laptops, and in one as
// large as the seed's. In YAML it is {small: 1MB, seed: 1GB}, or one size for both.
type Size struct{ Small, Seed unit.Size }

// UnmarshalYAML reads a size.
func (s *Size) UnmarshalYAML(read func(any) error) error {
	var one string
	var both struct {
		Small string `yaml:"small"`
		Seed  string `yaml:"seed"`
	}
	if read(&one) == nil {
		both.Small, both.Seed = one, one
	} else if err := read(&both); err != nil {
		return err
	}
	var err, err2 error
	s.Small, err = unit.ParseSize(both.Small)
	s.Seed, err2 = unit.ParseSize(both.Seed)
	return errors.Join(err, err2)
}

// A Span is a range of whole numbers, both ends included. In YAML it is 3, 1-7 or,
// of files, all.
type Span struct {
	First, Last int
	All, Given  bool
}

// UnmarshalYAML reads a span.
func (s *Span) UnmarshalYAML(read func(any) error) error {
	var text string
	if err := read(&text); err != nil {
		return err
	}
	s.Given = true
	if s.All = text == "all"; s.All {
		return nil
	}
	first, last, two := strings.Cut(text, "-")
	a, err := strconv.Atoi(strings.TrimSpace(first))
	b := a
	if err == nil && two {
		b, err = strconv.Atoi(strings.TrimSpace(last))
	}
	if err != nil || a < 0 || b < a {
		return fmt.Errorf("%q is no range: use a number, two as in 1-7, or all", text)
	}
	s.First, s.Last = a, b
	return nil
}

// has tells whether n is in the span.
func (s Span) has(n int) bool { return s.All || s.First <= n && n <= s.Last }

// String writes a span as it is read.
func (s Span) String() string {
	switch {
	case s.All:
		return "all"
	case s.First == s.Last:
		return strconv.Itoa(s.First)
	}
	return fmt.Sprintf("%d-%d", s.First, s.Last)
}

const (
	mostFiles = 100_000
	mostCases = 100

	mostRequests = 1000
	mostSites    = 20
)

// Parse reads a scenario. It is strict: unknown keys and what cannot be tried are
// errors that say where.
func Parse(text []byte) (*Scenario, error) {
	s := &Scenario{}
	if err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(s); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.New(yaml.FormatError(err, false, true))
	}
	if len(s.Sites) == 0 {
		s.Sites = []string{"A", "B", "C"}
	}
	switch {
	case s.Name == "" || strings.ContainsAny(s.Name, "/\\ "):
		return nil, fmt.Errorf("name: %q: use one word", s.Name)
	case len(s.Sites) < 2 || len(s.Sites) > mostSites:
		return nil, fmt.Errorf("sites: %d of them: use 2 to %d", len(s.Sites), mostSites)
	case s.AtOnce < 0 || s.AtOnce > 1000:
		return nil, fmt.Errorf("at_once: %d: use up to 1000", s.AtOnce)
	case len(s.Cases) == 0 || len(s.Cases) > mostCases:
		return nil, fmt.Errorf("cases: %d of them: use 1 to %d", len(s.Cases), mostCases)
	}
	for i := range s.Cases {
		if err := s.Cases[i].check(s.Sites); err != nil {
			return nil, fmt.Errorf("case %d, %s: %w", i+1, s.Cases[i].Name, err)
		}
	}
	return s, nil
}

func (c *Case) check(sites []string) error {
	c.Requests = max(c.Requests, 1)
	switch {
	case c.Name == "":
		return errors.New("it has no name: say what is tried")
	case c.Files < 1 || c.Files > mostFiles:
		return fmt.Errorf("files: %d: use 1 to %d", c.Files, mostFiles)
	case c.Size.Small <= 0 || c.Size.Seed <= 0:
		return errors.New("size: give files at least a byte, as in size: 1MB, or {small: 1MB, seed: 1GB}")
	case len(c.At) == 0:
		return errors.New("at: no site has the files, as in at: {A: all} or {A: 1-7, B: 8-10}")
	case c.Requests > mostRequests:
		return fmt.Errorf("requests: %d: use up to %d", c.Requests, mostRequests)
	case c.Requests > c.Files:
		return fmt.Errorf("requests: %d for %d files: each needs one", c.Requests, c.Files)
	case c.Open < 0 || c.Open > c.Requests:
		return fmt.Errorf("open: %d of %d requests", c.Open, c.Requests)
	case !slices.Contains([]transfer.Status{transfer.Completed, transfer.Partial, transfer.Failed, transfer.Cancelled, transfer.Rejected, transfer.Expired}, c.Expect.Status):
		return fmt.Errorf("expect: status %q: use one in which requests end, such as completed or partial", c.Expect.Status)
	case c.Mode != "" && c.Mode != transfer.Pull && c.Mode != transfer.Push && c.Mode != transfer.Third:
		return fmt.Errorf("mode: %q: use pull, push or third, or leave it out", c.Mode)
	}
	if !c.Expect.Arrived.Given {
		c.Expect.Arrived = Span{First: c.Files, Last: c.Files, Given: true}
	}
	return c.places(sites)
}

// places checks that files, sites and events are those of the scenario.
func (c *Case) places(sites []string) error {
	known := func(name string) error {
		if !slices.Contains(sites, name) {
			return fmt.Errorf("%q is none of the sites %s", name, strings.Join(sites, ", "))
		}
		return nil
	}
	if err := known(c.To); err != nil {
		return fmt.Errorf("to: %w", err)
	}
	for _, at := range []map[string]Span{c.At, c.Expect.From} {
		for _, name := range slices.Sorted(maps.Keys(at)) {
			if err := known(name); err != nil {
				return err
			}
		}
	}
	for _, n := range c.Missing {
		if n < 1 || n > c.Files {
			return fmt.Errorf("missing: there is no file %d", n)
		}
	}
	for _, e := range c.Events {
		if (e.Off == "") == (e.On == "") || e.After < 0 {
			return errors.New("events: each is {after: FILES, off: SITE} or {after: FILES, on: SITE}")
		}
		if err := known(e.Off + e.On); err != nil {
			return fmt.Errorf("events: %w", err)
		}
	}
	return nil
}

// Bytes is the size of each file, in a trial as large as the seed's or in a small one.
func (c *Case) Bytes(seed bool) int64 {
	if seed {
		return int64(c.Size.Seed)
	}
	return int64(c.Size.Small)
}

// Need is how many bytes of files some sites that share a disk hold at most while the
// case is played: what several of them have at its beginning is there once.
func (c *Case) Need(sites []string, seed bool) int64 {
	var files int64
	for i := range c.Files {
		if slices.ContainsFunc(sites, func(site string) bool { return c.has(site, i+1) }) {
			files++
		}
	}
	if slices.Contains(sites, c.To) {
		files += int64(c.Files)
	}
	return files * c.Bytes(seed)
}

// has tells whether a site has a file at the beginning.
func (c *Case) has(site string, file int) bool {
	at, ok := c.At[site]
	return ok && at.has(file)
}

// Text says what is expected.
func (e *Expect) Text() string {
	parts := []string{string(e.Status), e.Arrived.String() + " arrive"}
	if e.Named.Given {
		parts = append(parts, e.Named.String()+" named")
	}
	for _, name := range slices.Sorted(maps.Keys(e.From)) {
		parts = append(parts, fmt.Sprintf("%s from %s", e.From[name], name))
	}
	return strings.Join(parts, ", ")
}
