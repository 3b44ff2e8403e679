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
	"weir/link"
	"weir/transfer"
)

// A Scenario is a series of cases that are played on sites of this machine, with the expected
// results. docs/transfer-demo.md describes its YAML.
type Scenario struct {
	Name   string   `yaml:"name"`
	Test   string   `yaml:"test"`    // of the seed, such as "1 and 2"
	About  string   `yaml:"about"`   // a sentence
	Sites  []string `yaml:"sites"`   // that are started
	AtOnce int      `yaml:"at_once"` // concurrent copies of a link, and of a site; 0: the scheduler decides
	Cases  []Case   `yaml:"cases"`

	// Links are emulated links of sites, by their names. A site without one is at the other end of all links, as
	// the coordinator is. No file is copied between two sites with links.
	Links map[string]link.Spec `yaml:"link"`

	// Probe is the share of files that are copied from another source than the source that is
	// predicted to be fastest; 0 is the coordinator's default. With two sources, 50% is a random
	// choice.
	Probe unit.Fraction `yaml:"probe"`

	// Patience is the time for which files wait for sites that are all down, before they fail; 0 is
	// a day.
	Patience unit.Duration `yaml:"patience"`
}

// A Case is one thing that is tried.
type Case struct {
	Name     string          `yaml:"name"`
	Files    int             `yaml:"files"`
	Size     Size            `yaml:"size"` // of each file
	At       map[string]Span `yaml:"at"`   // the files that a site has, numbered from 1
	Missing  []int           `yaml:"missing"`
	To       Names           `yaml:"to"`     // one site, or several: each request goes to each of them
	Spread   bool            `yaml:"spread"` // each request goes to one of the sites in To, in turn
	Same     bool            `yaml:"same_content"`
	Mode     transfer.Mode   `yaml:"mode"`
	Requests int             `yaml:"requests"` // among which the files are distributed; 0 is one
	Open     int             `yaml:"open"`     // maximum of open requests; 0: all of them
	Every    unit.Duration   `yaml:"every"`    // requests are added one by one, in this time; 0: together
	Tries    int             `yaml:"tries"`    // of a file
	Events   []Change        `yaml:"events"`
	Expect   Expect          `yaml:"expect"`
}

// A Change is a change of a site during a case.
type Change struct {
	After int    `yaml:"after"` // files have arrived
	Off   string `yaml:"off"`   // the site that is switched off, as by a power cut
	On    string `yaml:"on"`    // the site that is started again

	Rename string `yaml:"rename"` // the site whose files all get other names
}

// Expect has the expected results. A range is one number or two, as in 3-9.
type Expect struct {
	Status  transfer.Status `yaml:"status"` // of each request
	Arrived Span            `yaml:"arrived"`
	Named   Span            `yaml:"named"`  // files that have not arrived: each has a reason
	Reason  string          `yaml:"reason"` // each of these reasons contains this
	From    map[string]Span `yaml:"from"`   // files that came from a site
}

// A Size is the size of files in a small trial, for minutes and laptops, and in a trial as large as
// the seed's. In YAML it is {small: 1MB, seed: 1GB}, or one size for both trials.
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

// Names are names of sites. In YAML they are a name or a list of names.
type Names []string

// UnmarshalYAML reads names.
func (n *Names) UnmarshalYAML(read func(any) error) error {
	var one string
	if read(&one) == nil {
		*n = Names{one}
		return nil
	}
	return read((*[]string)(n))
}

// A Span is a range of whole numbers, both ends included. In YAML it is 3, 1-7 or, for files, all.
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

// has reports whether n is in the span.
func (s Span) has(n int) bool { return s.All || s.First <= n && n <= s.Last }

// String formats a span in the format that it is parsed from.
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

// Parse parses a scenario. It is strict: unknown keys and impossible values are errors that contain
// their position.
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
	case s.Probe < 0 || s.Probe > 1:
		return nil, fmt.Errorf("probe: %s: use a share of the files, as in 50%%", s.Probe)
	case len(s.Cases) == 0 || len(s.Cases) > mostCases:
		return nil, fmt.Errorf("cases: %d of them: use 1 to %d", len(s.Cases), mostCases)
	}
	if err := s.checkLinks(); err != nil {
		return nil, err
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
	case len(c.To) == 0:
		return errors.New("to: no site gets the files, as in to: C or to: [C, D]")
	case c.Spread && c.Requests%len(c.To) != 0:
		return fmt.Errorf("spread: %d requests cannot be spread evenly over %d sites", c.Requests, len(c.To))
	case c.Every < 0 || c.Every > 0 && c.Open > 0:
		return errors.New("every: use a time, as in every: 1s, and not together with open")
	case c.Open < 0 || c.Open > c.Requests:
		return fmt.Errorf("open: %d of %d requests", c.Open, c.Requests)
	case !slices.Contains([]transfer.Status{transfer.Completed, transfer.Partial, transfer.Failed, transfer.Cancelled, transfer.Rejected,
		transfer.Expired}, c.Expect.Status):
		return fmt.Errorf("expect: status %q: use one in which requests end, such as completed or partial", c.Expect.Status)
	case c.Mode != "" && c.Mode != transfer.Pull && c.Mode != transfer.Push && c.Mode != transfer.Third:
		return fmt.Errorf("mode: %q: use pull, push or third, or leave it out", c.Mode)
	}
	if n := c.copies(); !c.Expect.Arrived.Given {
		c.Expect.Arrived = Span{First: n, Last: n, Given: true}
	}
	return c.places(sites)
}

// places checks that files, sites and events belong to the scenario.
func (c *Case) places(sites []string) error {
	known := func(name string) error {
		if !slices.Contains(sites, name) {
			return fmt.Errorf("%q is none of the sites %s", name, strings.Join(sites, ", "))
		}
		return nil
	}
	for i, to := range c.To {
		if err := known(to); err != nil {
			return fmt.Errorf("to: %w", err)
		}
		if slices.Contains(c.To[:i], to) {
			return fmt.Errorf("to: %s is there twice", to)
		}
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
		if len(e.site()) == 0 || e.site() != e.Off && e.site() != e.On && e.site() != e.Rename || e.After < 0 {
			return errors.New("events: each is {after: FILES, off: SITE}, {after: FILES, on: SITE} or {after: FILES, rename: SITE}")
		}
		if err := known(e.site()); err != nil {
			return fmt.Errorf("events: %w", err)
		}
	}
	return nil
}

// site returns the site of a change; if it has several, their names together.
func (e *Change) site() string { return e.Off + e.On + e.Rename }

// copies returns the number of files that arrive if no file fails.
func (c *Case) copies() int {
	if c.Spread {
		return c.Files
	}
	return c.Files * len(c.To)
}

// Named returns the links in the format of the emulator.
func (s *Scenario) Named() (all []link.Named) {
	for _, name := range slices.Sorted(maps.Keys(s.Links)) {
		all = append(all, link.Named{Name: name, Spec: s.Links[name]})
	}
	return all
}

// checkLinks checks the links, and that each copy passes at most one of them.
func (s *Scenario) checkLinks() error {
	for name := range s.Links {
		if !slices.Contains(s.Sites, name) {
			return fmt.Errorf("link: %q is none of the sites %s", name, strings.Join(s.Sites, ", "))
		}
	}
	if err := link.Check(s.Named()); err != nil {
		return err
	}
	if t := link.Trunks(s.Named()); len(t) > 0 {
		return fmt.Errorf("link: %s is the trunk of %s: links of transfers lead to their sites alone; omit trunk", t[0].Name,
			link.Over(s.Named(), t[0].Name)[0])
	}
	far := func(name string) bool { _, ok := s.Links[name]; return ok }
	for i := range s.Cases {
		c := &s.Cases[i]
		for _, to := range c.To {
			for at := range c.At {
				if at != to && far(at) && far(to) {
					return fmt.Errorf("link: case %d, %s: %s and %s have links: give one to one of them only", i+1, c.Name, at, to)
				}
			}
		}
	}
	return nil
}

// Bytes returns the size of each file, in a trial as large as the seed's or in a small trial.
func (c *Case) Bytes(seed bool) int64 {
	if seed {
		return int64(c.Size.Seed)
	}
	return int64(c.Size.Small)
}

// Need returns the maximum number of bytes of files on some sites that share a disk while the case
// is played. A file that several of these sites have at the beginning counts once.
func (c *Case) Need(sites []string, seed bool) int64 {
	var files int64
	for i := range c.Files {
		if slices.ContainsFunc(sites, func(site string) bool { return c.has(site, i+1) }) {
			files++
		}
	}
	for _, to := range c.To {
		if slices.Contains(sites, to) {
			files += int64(c.copies() / len(c.To))
		}
	}
	return files * c.Bytes(seed)
}

// has reports whether a site has a file at the beginning.
func (c *Case) has(site string, file int) bool {
	at, ok := c.At[site]
	return ok && at.has(file)
}

// Text describes the expectations.
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
