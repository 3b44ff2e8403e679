package weir

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir/internal/require"
)

// grammarBounds are the sentences with a grammarFault that an area may have, per 1,000 words, if they are more than grammarEnd. A bound
// may only fall: TestGrammar fails as well if an area is more than 10% below its bound, and prints the new bound. Areas of Go without
// tests are the top folders.
var grammarBounds = map[string]float64{"docs": 4.5, "help.txt": 4.1}

// grammarEnd is the bound of all other areas. Packages of Go's standard library have 1.0 to 1.7.
const grammarEnd = 1.0

// A grammarFault is a construction that native technical English does not have, or has rarely.
type grammarFault struct {
	name    string
	pattern *regexp.Regexp
	not     *regexp.Regexp // a match of pattern that is correct
	first   bool           // only the first sentence of a comment, which documents a name
	better  string
}

// grammarFaults match one sentence each, without quotations and code.
var grammarFaults = []grammarFault{
	{name: "what", better: "the thing: the measurements, the result", // free relative: "sends what it has"; "what to do" is a question
		pattern: regexp.MustCompile(`\b(?:[Ww]hat|[Ww]hatever|[Ww]hoever)\b(?: to\b)?`), not: regexp.MustCompile(` to$`)},
	{name: "who", better: "the client, the caller", // as subject or object: "the owner is who began it"; not after a noun
		pattern: regexp.MustCompile(`(?:^Who|\b(?:of|to|for|by|from|with|on|in|is|are|was|as|and|or|than|if|only|but) who)\b`)},
	{name: "how", better: "the number, the duration, the way", // free relative: "by how much"; "depends on how" is a question
		pattern: regexp.MustCompile(`^How\b(?: to\b)?|\b(?:of|to|for|by|from|with|in|after|at|and|or|than|as|is|are|was) how\b(?: to\b)?`),
		not:     regexp.MustCompile(` to$`)},
	{name: "where", better: "the folder, the address; if", // free relative: "the end is where it stops"; "the folder where" has a noun
		pattern: regexp.MustCompile(`^Where\b|\b(?:of|to|from|in|at|and|or|than|is|are|was) where\b`)},
	{name: "is whether", better: "reports whether, controls", // free relative as a complement: "its value is whether all have"
		pattern: regexp.MustCompile(`^Whether\b|\b(?:is|are|was|were) (?:whether|why|when|whose)\b`)},
	{name: "doc", first: true, better: "the name and a verb", // no noun phrase: "held is for tests"
		pattern: regexp.MustCompile(`^(?:An? )?\w+ (?:is|are|was) (?:for|of|in|by|from|who|that|which|what|how|where|whether|when)\b`),
		not:     regexp.MustCompile(`^(?:It|This|That|There|These|Each) `)},
	{name: "says", better: "returns, reports, prints, requests, detects", // software as a person; users and documents may
		pattern: regexp.MustCompile(`(?:^|[\w)\]'"]+ )(?:[Ss]ays|[Tt]ells|[Aa]sks|[Kk]nows|[Ll]earns|[Ww]ants|[Hh]ears|[Ss]ees)\b`),
		not:     regexp.MustCompile(`(?i)^(?:user|reader|person|somebody|someone|operator|admin|administrator|human|specification|\d+) `)},
	{name: "answers", better: "responds, returns", // the verb; "the answers", "two answers" are nouns
		pattern: regexp.MustCompile(`\b(?:it|that|which|and|or|who|server|client|site|weir|coordinator|agent|worker|[A-Z]\w+) answers\b`),
		not:     regexp.MustCompile(`^(?:The|All|Its|No|Their|Two|Both|Other|HTTP) `)},
	{name: "none", better: "no step, no server", // the noun
		pattern: regexp.MustCompile(`\b[Nn]one\b`)},
	{name: "one", better: "the first source, a name", // the noun: "the one that"; "one of the servers", "one server" have a noun
		pattern: regexp.MustCompile(`\bones\b|\b[Oo]ne (?:that|which|who|whose)\b|\b(?:the|that|this|no|an? \w+|the \w+) one` +
			`(?:$|[.,;:)]| (?:is|are|was|has|had|can|may|does|did|of|in|with|for|from|to|at|on|by|and|or|as|alone)\b)`)},
	{name: "those", better: "the remaining hosts, the files that", // the noun: "those of"; "those files" has a noun
		pattern: regexp.MustCompile(`\b[Tt]hose(?:$|[.,;:)]| (?:of|that|which|who|whose|in|with|without|at|on|for|from|by|to|and|or|not|only|` +
			`is|are|was|were|have|had|has|can|may|must|do|did)\b)`)},
	{name: "both", better: "both servers, the two files", // the noun: "both are"; "both A and B", "both servers" have nouns
		pattern: regexp.MustCompile(`\b[Bb]oth(?:$|[.,;:)]| (?:of|at|in|with|for|from|by|to|is|are|was|were|have|had|has|can|may|must|do|did)\b)`)},
}

// A grammarCount is the number of words and of sentences with a fault, of an area or a file.
type grammarCount struct {
	words int
	found []string
}

// rate returns the number of sentences with a fault per 1,000 words.
func (c *grammarCount) rate() float64 { return 1000 * float64(len(c.found)) / float64(max(c.words, 1)) }

// TestGrammar counts, per 1,000 words of each area, the sentences with a fault. With WEIR_GRAMMAR set it logs those of the files
// whose names match that regular expression.
func TestGrammar(t *testing.T) {
	areas := countGrammar(t)
	if log := os.Getenv("WEIR_GRAMMAR"); log != "" {
		logGrammar(t, areas, regexp.MustCompile(log))
	}
	for _, area := range slices.Sorted(maps.Keys(areas)) {
		files, bound := areas[area], max(grammarBounds[area], grammarEnd)
		var all grammarCount
		for _, c := range files {
			all.words += c.words
			all.found = append(all.found, c.found...)
		}
		next := max(math.Ceil(10*all.rate())/10, grammarEnd)
		t.Logf("%s: %.2f per 1,000 words (%d in %d)", area, all.rate(), len(all.found), all.words)
		switch {
		case all.rate() > bound:
			t.Errorf("%s: %.2f faults per 1,000 words, at most %.1f; the worst files:%s", area, all.rate(), bound, worst(files))
		case all.rate() < 0.9*bound && next < bound:
			t.Errorf("%s: %.2f faults per 1,000 words: lower its bound from %.1f to %.1f", area, all.rate(), bound, next)
		}
	}
	for area := range grammarBounds {
		if areas[area] == nil {
			t.Errorf("there is no area %s: remove its bound", area)
		}
	}
}

// worst returns three files with the most faults, and the first fault of each.
func worst(files map[string]*grammarCount) string {
	names := slices.SortedFunc(maps.Keys(files), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(files[b].found), len(files[a].found)), cmp.Compare(a, b))
	})
	var b strings.Builder
	for _, name := range names[:min(3, len(names))] {
		if c := files[name]; len(c.found) > 0 {
			fmt.Fprintf(&b, "\n%s: %d, such as %s", name, len(c.found), c.found[0])
		}
	}
	return b.String()
}

func logGrammar(t *testing.T, areas map[string]map[string]*grammarCount, match *regexp.Regexp) {
	t.Helper()
	for _, files := range areas {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if !match.MatchString(name) {
				continue
			}
			for _, f := range files[name].found {
				t.Logf("%s: %s", name, f)
			}
			t.Logf("%s: %d in %d words", name, len(files[name].found), files[name].words)
		}
	}
}

// TestGrammarFaults checks each pattern with sentences that it must match and must not match.
func TestGrammarFaults(t *testing.T) {
	for name, c := range map[string]struct{ faulty, correct []string }{
		"what": {
			[]string{"It sends what it has.", "What the clients saw is written.", "held is what a lease has."},
			[]string{"What is measured?", "It decides what to do next.", `The error is "what is that".`},
		},
		"who": {
			[]string{"It depends on who asks.", "Who asks is unknown.", "The owner is who began it."},
			[]string{"Users who ask get it.", "Who may read it?", "A user, who may wait."},
		},
		"how": {
			[]string{"How long it took is unknown.", "It says by how much.", "The rate and how long it holds."},
			[]string{"The limit depends on how many clients there are.", "How to resume a run.", "It controls how files are read."},
		},
		"where": {
			[]string{"Where a server has no checksum, it is computed.", "The end is where it stops.", "It copies to where it was."},
			[]string{"The folder where it is.", "Where is it?"},
		},
		"is whether": {
			[]string{"Its value is whether all have ended.", "Whether it ends is unknown."},
			[]string{"It reports whether all have ended."},
		},
		"doc": {
			[]string{"held is for tests.", "A lease is by whom it is held.", "Fails is whether it fails."},
			[]string{"held is a lease.", "It is for tests.", "The file is small. Its name is of no use."},
		},
		"says": {
			[]string{"The server says no.", "It tells the client.", "A worker that asks for steps.", "run knows it.", "Knows the rate."},
			[]string{"The user sees a table.", "RFC 7230 says so.", "It was seen."},
		},
		"answers": {
			[]string{"The server answers.", "It reads and answers.", "Serve answers requests."},
			[]string{"The answers differ.", "Two answers are lost.", "All answers arrive."},
		},
		"none": {
			[]string{"None does.", "nil if there is none."},
			[]string{`The mode is "none".`, "A nonempty file."},
		},
		"one": {
			[]string{"It is the one that ends.", "One that is lost.", "Old ones go.", "It replaces an old one."},
			[]string{"One of the servers.", "The one file.", "From zero to one.", "One server is enough."},
		},
		"those": {
			[]string{"It has those of the server.", "Only those.", "Those that end."},
			[]string{"Those files are kept."},
		},
		"both": {
			[]string{"Both are lost.", "It reads both.", "One of both is enough."},
			[]string{"Both servers.", "It reads both A and B."},
		},
	} {
		i := slices.IndexFunc(grammarFaults, func(f grammarFault) bool { return f.name == name })
		if i < 0 {
			t.Fatalf("there is no pattern %q", name)
		}
		for _, text := range c.faulty {
			if !slices.ContainsFunc(sentences(text), func(s string) bool { return grammarFaults[i].in(s, true) }) {
				t.Errorf("%s does not match %q", name, text)
			}
		}
		for _, text := range c.correct {
			for k, s := range sentences(text) {
				if grammarFaults[i].in(s, k == 0) {
					t.Errorf("%s matches %q", name, text)
				}
			}
		}
	}
}

// in reports whether a sentence has the fault. first is true for the first sentence of a text.
func (f grammarFault) in(sentence string, first bool) bool {
	if f.first && !first || strings.HasSuffix(sentence, "?") {
		return false
	}
	for _, found := range f.pattern.FindAllString(sentence, -1) {
		if f.not == nil || !f.not.MatchString(found) {
			return true
		}
	}
	return false
}

var (
	quotation   = regexp.MustCompile("\"[^\"]*\"|`[^`]*`")
	sentenceEnd = regexp.MustCompile(`[.;:?!]["')]*\s+`)
	listMarker  = regexp.MustCompile(`^(?:[-*|>]|\d+\.)\s+`)
)

// sentences splits a text into sentences, without its quotations and code. An empty line ends a sentence, and so does a list marker.
func sentences(text string) (all []string) {
	var block []string
	flush := func() {
		rest := quotation.ReplaceAllString(strings.Join(block, " "), `""`)
		for at := sentenceEnd.FindStringIndex(rest); at != nil; at = sentenceEnd.FindStringIndex(rest) {
			all, rest = append(all, strings.TrimSpace(rest[:at[1]])), rest[at[1]:]
		}
		if rest = strings.TrimSpace(rest); rest != "" {
			all = append(all, rest)
		}
		block = nil
	}
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if marker := listMarker.FindString(line); marker != "" || line == "" {
			flush()
			line = line[len(marker):]
		}
		block = append(block, line)
	}
	flush()
	return all
}

// add counts a text that begins at a line.
func (c *grammarCount) add(text string, line int) {
	c.words += len(strings.Fields(text))
	for i, s := range sentences(text) {
		for _, f := range grammarFaults {
			if f.in(s, i == 0) {
				c.found = append(c.found, fmt.Sprintf("%d: %s: %s", line, f.name, s))
				break
			}
		}
	}
}

// countGrammar counts all files by area and name.
func countGrammar(t *testing.T) map[string]map[string]*grammarCount {
	t.Helper()
	areas := map[string]map[string]*grammarCount{}
	of := func(area, name string) *grammarCount {
		if areas[area] == nil {
			areas[area] = map[string]*grammarCount{}
		}
		areas[area][name] = &grammarCount{}
		return areas[area][name]
	}
	for _, name := range sources(t) {
		name = filepath.ToSlash(name)
		top, _, below := strings.Cut(name, "/")
		switch {
		case strings.HasSuffix(name, "_test.go"):
			of("Go tests", name).addGo(t, name)
		case strings.HasSuffix(name, ".go") && below:
			of(top, name).addGo(t, name)
		case strings.HasPrefix(name, "web/src/") && filepath.Ext(name) == ".ts":
			of("web/src", name).addScript(string(require.File(t, name)))
		}
	}
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	for _, name := range append(pages, "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md") {
		of("docs", name).addPage(string(require.File(t, name)))
	}
	help := filepath.Join("cmd", "weir", "help.txt")
	of("help.txt", help).add(string(require.File(t, help)), 1)
	return areas
}

// addGo counts the comments of a file of Go. Comments on consecutive lines are one text, and comments for tools do not count.
func (c *grammarCount) addGo(t *testing.T, name string) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	if ast.IsGenerated(f) {
		return
	}
	for _, group := range f.Comments {
		c.add(group.Text(), set.Position(group.Pos()).Line)
	}
}

// scriptComment matches a line of TypeScript that has a comment, or is a line of one.
var scriptComment = regexp.MustCompile(`^\s*(?:/?\*+/?|//)\s?(.*)$|\s//\s(.*)$`)

// addScript counts the comments of a file of TypeScript.
func (c *grammarCount) addScript(src string) {
	var text []string
	begin := 0
	flush := func() {
		if len(text) > 0 {
			c.add(strings.Join(text, "\n"), begin)
		}
		text = nil
	}
	for i, line := range strings.Split(src, "\n") {
		m := scriptComment.FindStringSubmatch(line)
		if m == nil {
			flush()
			continue
		}
		if len(text) == 0 {
			begin = i + 1
		}
		text = append(text, strings.TrimSuffix(m[1]+m[2], "*/"))
	}
	flush()
}

// addPage counts a page in Markdown without its code and headings.
func (c *grammarCount) addPage(page string) {
	var text []string
	begin, code := 1, false
	for i, line := range append(strings.Split(page, "\n"), "") {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence {
			code = !code
		}
		if strings.TrimSpace(line) == "" || fence || code || strings.HasPrefix(line, "#") {
			c.add(strings.Join(text, "\n"), begin)
			text, begin = nil, i+2
			continue
		}
		text = append(text, line)
	}
}
