package reports

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A page is a file NNN-runs.md of docs/reports, cut at its lines: the commands and results behind
// the report's page NNN-name.md.
type page struct {
	path   string
	report string // path of the report's page
	lines  []string
	runs   []*run
}

// A run is a command of a page, a comparison of runs or the analysis of a published table.
type run struct {
	name    string
	command string
	line    int // of the command, from 1
	text    [2]int
	figures []string // the names of its figures, without NAME- and .svg
}

var (
	outDir  = regexp.MustCompile(`--(?:out|figures) runs/([0-9]{3}-[a-z0-9-]+)`)
	picture = regexp.MustCompile(`!\[[^\]]*\]\(figures/([0-9]{3}-[a-z0-9-]+)\.svg\)`)
)

// readPages reads the runs of all reports below a folder, with the figures that their pages show. It
// is an error if a command has no block for its output.
func readPages(root string) (pages []*page, err error) {
	paths, err := filepath.Glob(filepath.Join(root, "docs/reports/[0-9][0-9][0-9]-runs.md"))
	if err != nil || len(paths) == 0 {
		return nil, errors.Join(errors.New("no pages"), err)
	}
	for _, path := range paths {
		p, err := readPage(path)
		if err != nil {
			return nil, err
		}
		pages = append(pages, p)
	}
	return pages, nil
}

func readPage(path string) (*page, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := &page{path: path, lines: strings.Split(string(text), "\n")}
	if err := p.find(); err != nil {
		return nil, err
	}
	if err := p.pictures(path, p.lines); err != nil {
		return nil, err
	}
	reports, err := filepath.Glob(strings.TrimSuffix(path, "runs.md") + "*.md")
	if err != nil || len(reports) != 2 {
		return nil, errors.Join(fmt.Errorf("%s: want the page of one report beside it, there are %q", path, reports), err)
	}
	p.report = reports[0]
	if p.report == path {
		p.report = reports[1]
	}
	lines, err := p.reportLines()
	if err != nil {
		return nil, err
	}
	return p, p.pictures(p.report, lines)
}

// reportLines returns the lines of the report's page.
func (p *page) reportLines() ([]string, error) {
	text, err := os.ReadFile(p.report)
	return strings.Split(string(text), "\n"), err
}

// find finds the runs of a page.
func (p *page) find() error {
	var last *run // whose output comes next
	for i := 0; i < len(p.lines); i++ {
		kind, fence := strings.CutPrefix(p.lines[i], "```")
		if !fence {
			continue
		}
		end := i + 1 + slices.Index(p.lines[i+1:], "```")
		if end == i {
			return fmt.Errorf("%s:%d: the block has no end", p.path, i+1)
		}
		body := strings.Join(p.lines[i+1:end], "\n")
		out := outDir.FindStringSubmatch(body)
		switch {
		case kind == "sh" && out != nil && last != nil:
			return fmt.Errorf("%s:%d: no block of text follows the command", p.path, last.line)
		case kind == "sh" && out != nil:
			last = &run{name: out[1], command: body, line: i + 2}
			p.runs = append(p.runs, last)
		case kind == "text" && last != nil:
			last.text, last = [2]int{i + 1, end}, nil
		}
		i = end
	}
	if last != nil {
		return fmt.Errorf("%s:%d: no block of text follows the command", p.path, last.line)
	}
	return nil
}

// pictures adds the figures that the lines of a file show to their runs.
func (p *page) pictures(path string, lines []string) error {
	for i, line := range lines {
		for _, m := range picture.FindAllStringSubmatch(line, -1) {
			r := p.owner(m[1])
			if r == nil {
				return fmt.Errorf("%s:%d: no run has the figure %s", path, i+1, m[1])
			}
			if name := strings.TrimPrefix(m[1], r.name+"-"); !slices.Contains(r.figures, name) {
				r.figures = append(r.figures, name)
			}
		}
	}
	return nil
}

// verdicts are the states of validity, the better first. The outputs of transfers have none.
func verdicts() []string { return []string{"valid", "suspect", "invalid", "no verdict"} }

var verdict = regexp.MustCompile(`(?m)^(valid|suspect|invalid):`)

// verdict returns the worst verdict in the output of a run.
func (p *page) verdict(r *run) string { return worstVerdict(p.output(r)) }

func worstVerdict(printed string) string {
	worst := -1
	for _, m := range verdict.FindAllStringSubmatch(printed, -1) {
		worst = max(worst, slices.Index(verdicts(), m[1]))
	}
	if worst < 0 {
		return "no verdict"
	}
	return verdicts()[worst]
}

// analyzes reports whether the command compares runs or analyzes a published table. This takes no
// time: it is done anew each time, and its figures are in the folder of --figures.
func (r *run) analyzes() bool {
	return strings.HasPrefix(r.command, "weir compare ") || strings.HasPrefix(r.command, "weir analyze ")
}

// owner returns the run of a figure, or nil if there is no such run.
func (p *page) owner(figure string) (owner *run) {
	for _, r := range p.runs {
		if strings.HasPrefix(figure, r.name+"-") && (owner == nil || len(r.name) > len(owner.name)) {
			owner = r
		}
	}
	return owner
}

// output returns the output of a run on the page.
func (p *page) output(r *run) string { return strings.Join(p.lines[r.text[0]:r.text[1]], "\n") }

// write replaces the output of a run on its page, as the page is now: it may have been edited while the run took hours.
func write(path, name, text string) error {
	p, err := readPage(path)
	if err != nil {
		return err
	}
	for _, r := range p.runs {
		if r.name == name {
			p.lines = slices.Concat(p.lines[:r.text[0]], strings.Split(strings.TrimRight(text, "\n"), "\n"), p.lines[r.text[1]:])
			return os.WriteFile(path, []byte(strings.Join(p.lines, "\n")), 0o644)
		}
	}
	return fmt.Errorf("%s no longer has %s", path, name)
}
