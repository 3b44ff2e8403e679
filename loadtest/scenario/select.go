package scenario

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"

	"weir/internal/document"
	"weir/internal/say"
	"weir/loadtest/workload"
)

// Match reports whether a file with the given path below the target is used: a pattern of Include
// matches it, if there are any, and no pattern of Exclude does. A pattern without a slash is
// matched with the last part of the path, any other pattern with the whole path; *, ? and [] have
// the meaning of path.Match, and ** stands for any number of folders. The target itself always
// matches.
func (f Files) Match(name string) bool {
	matches := func(pattern string) bool { return matchPattern(pattern, name) }
	return name == "" || (len(f.Include) == 0 || slices.ContainsFunc(f.Include, matches)) && !slices.ContainsFunc(f.Exclude, matches)
}

func matchPattern(pattern, name string) bool {
	if !strings.Contains(pattern, "/") {
		name = path.Base(name)
	}
	return matchParts(strings.Split(strings.Trim(pattern, "/"), "/"), strings.Split(name, "/"))
}

func matchParts(pattern, name []string) bool {
	for len(pattern) > 0 && pattern[0] != "**" {
		if len(name) == 0 {
			return false
		}
		if ok, err := path.Match(pattern[0], name[0]); err != nil || !ok {
			return false
		}
		pattern, name = pattern[1:], name[1:]
	}
	if len(pattern) == 0 {
		return len(name) == 0
	}
	for i := range len(name) + 1 {
		if matchParts(pattern[1:], name[i:]) {
			return true
		}
	}
	return false
}

// Select returns the matching files, or a sample of them, which the seed fixes. It returns an error
// if no file matches.
func (f Files) Select(files []workload.File, seed uint64) ([]workload.File, error) {
	if len(f.Include)+len(f.Exclude)+f.Sample == 0 {
		return files, nil
	}
	chosen := slices.DeleteFunc(slices.Clone(files), func(one workload.File) bool { return !f.Match(one.Path) })
	if len(chosen) == 0 && len(files) > 0 {
		return nil, fmt.Errorf("files: none of %s matches include and exclude, the first is %.200q: the patterns are of names below the target",
			say.Plural(len(files), "file"), files[0].Path)
	}
	if f.Sample <= 0 || f.Sample >= len(chosen) {
		return chosen, nil
	}
	byPath := func(a, b workload.File) int { return cmp.Compare(a.Path, b.Path) }
	slices.SortFunc(chosen, byPath)                  // services list in any order
	r := rand.New(rand.NewPCG(seed, 0x73616d706c65)) // not a client's stream
	for i := range f.Sample {
		j := i + r.IntN(len(chosen)-i)
		chosen[i], chosen[j] = chosen[j], chosen[i]
	}
	chosen = chosen[:f.Sample]
	slices.SortFunc(chosen, byPath)
	return chosen, nil
}

// selectionText describes the selection of files, with a comma before it; "" if all files are used.
func (f Files) selectionText() string {
	text := ""
	if len(f.Include) > 0 {
		text += ", those that match " + strings.Join(f.Include, " or ")
	}
	if len(f.Exclude) > 0 {
		text += ", without " + strings.Join(f.Exclude, " and ")
	}
	if f.Sample > 0 {
		text += fmt.Sprintf(", at most %d of them, drawn at random", f.Sample)
	}
	return text
}

// CheckPattern returns an error if no file can match the pattern.
func CheckPattern(pattern string) error {
	_, err := path.Match(pattern, "")
	if err != nil || strings.Trim(pattern, "/") == "" {
		return fmt.Errorf("%s is not a pattern; use one such as *.root or 2024/**/*.root", document.Quote(pattern))
	}
	return nil
}

// selection checks the keys that Match and Select use.
func (c *checker) selection() {
	f := c.Files
	for key, patterns := range map[string][]string{"include": f.Include, "exclude": f.Exclude} {
		c.refuse(len(patterns) > 0 && f.Make != nil, "files."+key, "applies to files.list and files.listing only; omit it")
		for i, p := range patterns {
			err := CheckPattern(p)
			c.refuse(err != nil, fmt.Sprintf("files.%s.%d", key, i), "%v", err)
		}
	}
	for key, given := range map[string]bool{"include": len(f.Include) > 0, "exclude": len(f.Exclude) > 0, "sample": f.Sample > 0} {
		c.refuse(given && f.Make == nil && !c.needsFiles() && !slices.Contains(c.operations(), "list"),
			"files."+key, "applies to workloads that read files; omit it")
	}
	c.refuse(f.Sample > 0 && f.Make != nil, "files.sample", "applies to files.list and files.listing only; omit it, or make fewer files")
}
