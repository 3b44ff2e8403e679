package scenario

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/document"
	"weir/internal/redact"
)

// A Matrix contains the keys that a campaign varies: the campaign has a run for each combination of
// the factors' levels.
type Matrix []Factor

// A Factor is a key of the scenario with several values, or a name for several keys that change
// together.
type Factor struct {
	Key    string // workload.session, or a name such as protocol
	Levels []Level
}

// A Level is one value of a factor.
type Level struct {
	Name string // the value as it is written, or the name of a map

	set []setting
}

// A setting gives one key of a scenario another value.
type setting struct {
	path  string
	at    document.Place // of the key
	value *document.Node
}

// Bounds of a campaign.
const (
	maxVariants = 256
	maxRuns     = 1000
	longestName = 60 // of a level, in characters
)

// Variants returns the number of combinations of levels; 1 without factors. It does not count
// beyond a million.
func (m Matrix) Variants() int {
	n := 1
	for _, f := range m {
		n = min(n*len(f.Levels), 1e6)
	}
	return n
}

// matrix removes the block matrix from root and returns its factors and its place. It adds the
// mistakes of the block to the mistakes of t.
func (t *tree) matrix(root *document.Node) (Matrix, document.Place) {
	block := root.Get("matrix")
	if block == nil {
		return nil, document.Place{}
	}
	root.Entries = slices.DeleteFunc(root.Entries, func(e document.Entry) bool { return e.Key == "matrix" })
	if block.Kind != document.Map || len(block.Entries) == 0 {
		t.Say(block.At, "matrix: %s; write keys and the values they take in turn, as in {workload.session: [kept, fresh]}", nothingElse(block))
		return nil, block.At
	}
	var all, m Matrix
	for _, e := range block.Entries {
		f, ok := t.factor(e)
		if !ok {
			continue
		}
		t.apart(all, f)
		all = append(all, f)
		if !t.fixed(root, &f) {
			t.unchanged(root, f)
			m = append(m, f)
		}
	}
	if n := m.Variants(); n > maxVariants {
		counts := make([]string, len(m))
		for i, f := range m {
			counts[i] = fmt.Sprint(len(f.Levels))
		}
		t.Say(block.At, "matrix: %s = %d combinations are too many; use at most %d, and omit levels or measure some factors in another campaign",
			strings.Join(counts, " x "), n, maxVariants)
	}
	return m, block.At
}

func nothingElse(n *document.Node) string {
	if n.Kind == document.Map && len(n.Entries) == 0 {
		return "an empty map"
	}
	return n.Describe()
}

// fixedKeys returns the keys that no matrix varies, with the reason.
func fixedKeys() map[string]string {
	return map[string]string{
		"name":      "belongs to the whole campaign; omit it, runs are named after their levels",
		"repeat":    "applies to all combinations; write repeat outside of the matrix",
		"matrix":    "a matrix cannot contain another; write its factors side by side",
		"out":       "each run has a folder of its own; omit it",
		"seed":      "each repetition has its own seed for all combinations; write seed outside of the matrix",
		"variables": "cannot be varied; vary the key that uses the variable",
	}
}

// factor reads one line of a matrix.
func (t *tree) factor(e document.Entry) (Factor, bool) {
	path := "matrix." + e.Key
	if text := unfit(e.Key); text != "" {
		t.Say(e.At, "%s: %s", path, text)
		return Factor{}, false
	}
	if e.Value.Kind != document.List {
		what := nothingElse(e.Value)
		if e.Value.Kind == document.Map {
			what += "; write a key's whole path, as in workload.session"
		}
		t.Say(e.Value.At, "%s: %s; write a list of the values that it takes in turn, as in [kept, fresh]", path, what)
		return Factor{}, false
	}
	if len(e.Value.Items) == 0 {
		t.Say(e.Value.At, "%s: an empty list: name at least one value", path)
		return Factor{}, false
	}
	f := Factor{Key: e.Key}
	own := !slices.Contains(scenarioKeys(), top(e.Key))
	for i, item := range e.Value.Items {
		level, ok := Level{Name: redact.Text(flow(item)), set: []setting{{e.Key, e.At, item}}}, true
		if own {
			level, ok = t.named(e, item)
		}
		if !ok {
			return Factor{}, false
		}
		if slices.ContainsFunc(f.Levels, func(l Level) bool { return l.Name == level.Name }) {
			t.Say(item.At, "%s.%d: level %s is there twice%s", path, i, document.Quote(level.Name), twins(own))
		}
		f.Levels = append(f.Levels, level)
	}
	return f, true
}

func twins(own bool) string {
	if own {
		return "; give each its own name"
	}
	return ", or looks like another: use a name for it, as in protocol: [{name: ..., KEY: ...}]"
}

// unfit returns the reason why a key cannot be varied, "" if it can be varied.
func unfit(path string) string {
	if text, ok := fixedKeys()[top(path)]; ok {
		return text
	}
	if keys := strings.Split(path, "."); slices.Contains(keys, "") || len(keys) > document.MaxDepth {
		return "not a key; write its dotted path, as in workload.session"
	}
	return ""
}

func top(path string) string {
	first, _, _ := strings.Cut(path, ".")
	return first
}

// named reads a level of a factor that is not a key: a map with a name and the keys that change
// together.
func (t *tree) named(e document.Entry, item *document.Node) (Level, bool) {
	name := item.Get("name")
	switch {
	case item.Kind != document.Map || name == nil:
		t.Say(item.At, "matrix.%s: unknown key %s%s. Keys that change together are maps with a name, as in %s: [{name: webdav, target: ...}]",
			e.Key, e.Key, strings.TrimSuffix(document.Meant(top(e.Key), scenarioKeys()), "?"), e.Key)
		return Level{}, false
	case name.Kind != document.Scalar || strings.TrimSpace(name.Text) == "":
		t.Say(name.At, "matrix.%s: name: %s; write a word", e.Key, name.Describe())
		return Level{}, false
	}
	l := Level{Name: short(name.Text)}
	for _, k := range item.Entries {
		if k.Key == "name" {
			continue
		}
		if text := unfit(k.Key); text != "" {
			t.Say(k.At, "matrix.%s: %s: %s", e.Key, k.Key, text)
			return Level{}, false
		}
		l.set = append(l.set, setting{k.Key, k.At, k.Value})
	}
	return l, true
}

// apart reports a factor that varies a key that another factor varies as well.
func (t *tree) apart(before Matrix, f Factor) {
	for _, s := range f.settings() {
		for _, other := range before {
			for _, o := range other.settings() {
				if over(o.path, s.path) {
					t.Say(s.at, "matrix.%s: %s is also varied by %s; vary each key in one factor only", f.Key, s.path, other.Key)
					return
				}
			}
		}
	}
}

// fixed reports whether the command line gives a factor one value: the value of a key, or the name
// of a level, whose keys then go into root, except the keys that the command line sets itself. If
// the command line gives several names, f keeps these levels.
func (t *tree) fixed(root *document.Node, f *Factor) bool {
	at := fromSet(root, f.Key)
	if at.Set != f.Key {
		return false
	}
	if slices.Contains(scenarioKeys(), top(f.Key)) {
		return true
	}
	chosen := root.Get(f.Key)
	root.Entries = slices.DeleteFunc(root.Entries, func(e document.Entry) bool { return e.Key == f.Key })
	items := []*document.Node{chosen}
	if chosen.Kind == document.List {
		items = chosen.Items
	}
	var levels []Level
	for _, item := range items {
		i := slices.IndexFunc(f.Levels, func(l Level) bool { return l.Name == flow(item) })
		if i < 0 {
			names := make([]string, len(f.Levels))
			for k, l := range f.Levels {
				names[k] = l.Name
			}
			t.Say(at, "matrix.%s has no level %s; use one of %s", f.Key, document.Quote(flow(item)), strings.Join(names, ", "))
			return true
		}
		levels = append(levels, f.Levels[i])
	}
	if len(levels) != 1 {
		f.Levels = levels
		return len(levels) == 0
	}
	for _, s := range levels[0].set {
		if fromSet(root, s.path).Set != s.path {
			t.Insert(root, strings.Split(s.path, "."), t.Copy(s.value), s.at)
		}
	}
	return true
}

// unchanged reports a factor that varies a key that the command line sets.
func (t *tree) unchanged(root *document.Node, f Factor) {
	for _, s := range f.settings() {
		if at := fromSet(root, s.path); at.Set != "" {
			t.Say(at, "matrix.%s varies %s; choose a level, as in --set %s=..., change the matrix (--set 'matrix.%s=[...]'), "+
				"or remove it (--set matrix=null)", f.Key, s.path, f.Key, f.Key)
			return
		}
	}
}

// settings returns one setting for each key that f varies.
func (f Factor) settings() []setting {
	var out []setting
	for _, l := range f.Levels {
		for _, s := range l.set {
			if !slices.ContainsFunc(out, func(o setting) bool { return o.path == s.path }) {
				out = append(out, s)
			}
		}
	}
	return out
}

// over reports whether two paths are equal, or one path is a prefix of the other.
func over(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+".")
}

// fromSet returns the place of the value that path has in root, or of a value below or above it, if
// it came from a --set.
func fromSet(root *document.Node, path string) document.Place {
	n := root
	for _, key := range strings.Split(path, ".") {
		if n = n.Get(key); n == nil {
			return document.Place{}
		}
		if n.Kind != document.Map && n.At.Set != "" {
			return n.At
		}
	}
	return given(n)
}

func given(n *document.Node) document.Place {
	if n.At.Set != "" {
		return n.At
	}
	for _, e := range n.Entries {
		if at := given(e.Value); at.Set != "" {
			return at
		}
	}
	return document.Place{}
}

// flow writes n in one line, as the name of a level.
func flow(n *document.Node) string {
	var parts []string
	switch n.Kind {
	case document.Null:
		return "left out"
	case document.List:
		for _, i := range n.Items {
			parts = append(parts, flow(i))
		}
		return short(strings.Join(parts, ","))
	case document.Map:
		for _, e := range n.Entries {
			parts = append(parts, e.Key+": "+flow(e.Value))
		}
		return short("{" + strings.Join(parts, ", ") + "}")
	}
	return short(n.Text)
}

// short turns text into a name: one line, at most longestName characters.
func short(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if r := []rune(text); len(r) > longestName {
		text = string(r[:longestName-3]) + "..."
	}
	if text == "" {
		return `""`
	}
	return text
}
