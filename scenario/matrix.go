package scenario

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/redact"
)

// A Matrix says what a campaign varies: it has a run for each combination of
// its factors' levels.
type Matrix []Factor

// A Factor is a key of the scenario with several values, or a name for
// several keys that change together.
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
	at    place // of the key
	value *node
}

// Bounds of a campaign.
const (
	maxVariants = 256
	maxRuns     = 1000
	longestName = 60 // of a level, in characters
)

// Variants returns how many combinations of levels there are; 1 without factors.
// It does not count beyond a million.
func (m Matrix) Variants() int {
	n := 1
	for _, f := range m {
		n = min(n*len(f.Levels), 1e6)
	}
	return n
}

// matrix takes the block matrix out of root and returns its factors and its place. What is
// wrong with it is among t's mistakes afterwards.
func (t *tree) matrix(root *node) (Matrix, place) {
	block := root.get("matrix")
	if block == nil {
		return nil, place{}
	}
	root.entries = slices.DeleteFunc(root.entries, func(e entry) bool { return e.key == "matrix" })
	if block.kind != mapping || len(block.entries) == 0 {
		t.say(block.at, "matrix: %s; write keys and the values they take in turn, as in {workload.session: [kept, fresh]}", nothingElse(block))
		return nil, block.at
	}
	var all, m Matrix
	for _, e := range block.entries {
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
		t.say(block.at, "matrix: %s = %d combinations are too many; use at most %d, and omit levels or measure some factors in another campaign",
			strings.Join(counts, " x "), n, maxVariants)
	}
	return m, block.at
}

func nothingElse(n *node) string {
	if n.kind == mapping && len(n.entries) == 0 {
		return "an empty map"
	}
	return n.what()
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
func (t *tree) factor(e entry) (Factor, bool) {
	path := "matrix." + e.key
	if text := unfit(e.key); text != "" {
		t.say(e.at, "%s: %s", path, text)
		return Factor{}, false
	}
	if e.value.kind != list {
		what := nothingElse(e.value)
		if e.value.kind == mapping {
			what += "; write a key's whole path, as in workload.session"
		}
		t.say(e.value.at, "%s: %s; write a list of the values that it takes in turn, as in [kept, fresh]", path, what)
		return Factor{}, false
	}
	if len(e.value.items) == 0 {
		t.say(e.value.at, "%s: an empty list: name at least one value", path)
		return Factor{}, false
	}
	f := Factor{Key: e.key}
	own := !slices.Contains(scenarioKeys(), top(e.key))
	for i, item := range e.value.items {
		level, ok := Level{Name: redact.Text(flow(item)), set: []setting{{e.key, e.at, item}}}, true
		if own {
			level, ok = t.named(e, item)
		}
		if !ok {
			return Factor{}, false
		}
		if slices.ContainsFunc(f.Levels, func(l Level) bool { return l.Name == level.Name }) {
			t.say(item.at, "%s.%d: level %s is there twice%s", path, i, quote(level.Name), twins(own))
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

// unfit says why a key cannot be varied, "" if it can.
func unfit(path string) string {
	if text, ok := fixedKeys()[top(path)]; ok {
		return text
	}
	if keys := strings.Split(path, "."); slices.Contains(keys, "") || len(keys) > maxDepth {
		return "not a key; write its dotted path, as in workload.session"
	}
	return ""
}

func top(path string) string {
	first, _, _ := strings.Cut(path, ".")
	return first
}

// named reads a level of a factor that is no key: a map with a name and the
// keys that change together.
func (t *tree) named(e entry, item *node) (Level, bool) {
	name := item.get("name")
	switch {
	case item.kind != mapping || name == nil:
		t.say(item.at, "matrix.%s: unknown key %s%s. Keys that change together are maps with a name, as in %s: [{name: webdav, target: ...}]",
			e.key, e.key, strings.TrimSuffix(meant(top(e.key), scenarioKeys()), "?"), e.key)
		return Level{}, false
	case name.kind != scalar || strings.TrimSpace(name.text) == "":
		t.say(name.at, "matrix.%s: name: %s; write a word", e.key, name.what())
		return Level{}, false
	}
	l := Level{Name: short(name.text)}
	for _, k := range item.entries {
		if k.key == "name" {
			continue
		}
		if text := unfit(k.key); text != "" {
			t.say(k.at, "matrix.%s: %s: %s", e.key, k.key, text)
			return Level{}, false
		}
		l.set = append(l.set, setting{k.key, k.at, k.value})
	}
	return l, true
}

// apart refuses a factor that varies what another one varies as well.
func (t *tree) apart(before Matrix, f Factor) {
	for _, s := range f.settings() {
		for _, other := range before {
			for _, o := range other.settings() {
				if over(o.path, s.path) {
					t.say(s.at, "matrix.%s: %s is also varied by %s; vary each key in one factor only", f.Key, s.path, other.Key)
					return
				}
			}
		}
	}
}

// fixed reports whether the command line gives a factor one value: a key's own, or a name of a level, whose keys then go
// into root, except for those that the command line sets itself. Of several names, f keeps these levels.
func (t *tree) fixed(root *node, f *Factor) bool {
	at := fromSet(root, f.Key)
	if at.set != f.Key {
		return false
	}
	if slices.Contains(scenarioKeys(), top(f.Key)) {
		return true
	}
	chosen := root.get(f.Key)
	root.entries = slices.DeleteFunc(root.entries, func(e entry) bool { return e.key == f.Key })
	items := []*node{chosen}
	if chosen.kind == list {
		items = chosen.items
	}
	var levels []Level
	for _, item := range items {
		i := slices.IndexFunc(f.Levels, func(l Level) bool { return l.Name == flow(item) })
		if i < 0 {
			names := make([]string, len(f.Levels))
			for k, l := range f.Levels {
				names[k] = l.Name
			}
			t.say(at, "matrix.%s has no level %s; use one of %s", f.Key, quote(flow(item)), strings.Join(names, ", "))
			return true
		}
		levels = append(levels, f.Levels[i])
	}
	if len(levels) != 1 {
		f.Levels = levels
		return len(levels) == 0
	}
	for _, s := range levels[0].set {
		if fromSet(root, s.path).set != s.path {
			t.insert(root, strings.Split(s.path, "."), t.copy(s.value), s.at)
		}
	}
	return true
}

// unchanged refuses a factor that varies what the command line gives a value.
func (t *tree) unchanged(root *node, f Factor) {
	for _, s := range f.settings() {
		if at := fromSet(root, s.path); at.set != "" {
			t.say(at, "matrix.%s varies %s; choose a level, as in --set %s=..., change the matrix (--set 'matrix.%s=[...]'), "+
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

// over says whether one of two paths is the other, or leads to it.
func over(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+".")
}

// fromSet returns the place of the value that path has in root, or of what is
// below or above it, if it came from a --set.
func fromSet(root *node, path string) place {
	n := root
	for _, key := range strings.Split(path, ".") {
		if n = n.get(key); n == nil {
			return place{}
		}
		if n.kind != mapping && n.at.set != "" {
			return n.at
		}
	}
	return given(n)
}

func given(n *node) place {
	if n.at.set != "" {
		return n.at
	}
	for _, e := range n.entries {
		if at := given(e.value); at.set != "" {
			return at
		}
	}
	return place{}
}

// flow writes n in one line: the name of a level.
func flow(n *node) string {
	var parts []string
	switch n.kind {
	case null:
		return "left out"
	case list:
		for _, i := range n.items {
			parts = append(parts, flow(i))
		}
		return short(strings.Join(parts, ","))
	case mapping:
		for _, e := range n.entries {
			parts = append(parts, e.key+": "+flow(e.value))
		}
		return short("{" + strings.Join(parts, ", ") + "}")
	}
	return short(n.text)
}

// short makes text a name: one line, not too long.
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
