package link

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// An Entry is a key of a map, as in a scenario, with its value: a text, or
// entries of its own.
type Entry struct {
	Key  string
	Text string
	Map  []Entry
	Kind Kind
}

// A Kind is what the value of an Entry is.
type Kind int

// Kinds of values.
const (
	Text  Kind = iota // a single value
	Map               // entries
	Other             // anything else, such as a list or nothing
)

// Read reads what stands under the key link: the keys of one link, as in
// {rate: 2Mbit/s, rtt: 51ms}, or the names of several, with the keys of each,
// as in {cern: {rate: 1Gbit/s}, home: {rate: 50Mbit/s, rtt: 25ms}}. Its error
// is of *KeyErrors joined by errors.Join; it goes on after a mistake, and what
// could be read is returned in any case.
func Read(entries []Entry) ([]Named, error) {
	r := &reader{}
	if len(entries) == 0 {
		r.say("", "there is nothing in it: write what the link is like, as in {rate: 100Mbit/s, rtt: 10ms}, or leave link out")
		return nil, errors.Join(r.errs...)
	}
	var links []Named
	single, named := 0, 0
	for _, e := range entries {
		switch {
		case e.Kind == Map && !slices.Contains(Keys(), e.Key):
			named++
		case e.Kind != Map && slices.Contains(Keys(), e.Key):
			single++
		}
	}
	switch {
	case named > 0 && single > 0:
		r.say("", "there are keys of one link and names of several: give each link a name, as in {cern: {rate: 1Gbit/s}, home: {rate: 50Mbit/s}}")
	case named > 0:
		for _, e := range entries {
			if e.Kind != Map {
				r.say(e.Key, "a link is a map of keys, as in %s: {rate: 1Gbit/s, rtt: 10ms}", short(e.Key))
				continue
			}
			links = append(links, Named{Name: e.Key, Spec: r.spec(e.Key+".", e.Map)})
		}
	default:
		links = []Named{{Spec: r.spec("", entries)}}
	}
	if len(r.errs) == 0 {
		return links, Check(links)
	}
	return links, errors.Join(r.errs...)
}

type reader struct{ errs []error }

func (r *reader) say(key, format string, args ...any) {
	r.errs = append(r.errs, &KeyError{Key: key, Text: fmt.Sprintf(format, args...)})
}

// spec reads the keys of one link; at is the path before them.
func (r *reader) spec(at string, entries []Entry) Spec {
	var s Spec
	if len(entries) == 0 {
		r.say(strings.TrimSuffix(at, "."), "there is nothing in it: write what the link is like, as in {rate: 100Mbit/s, rtt: 10ms}")
	}
	seen := map[string]bool{}
	for _, e := range entries {
		switch {
		case !slices.Contains(Keys(), e.Key):
			r.say(at+e.Key, "unknown key: use one of %s", strings.Join(Keys(), ", "))
		case e.Kind != Text:
			r.say(at+e.Key, "this is a single value, as in %s", example(e.Key))
		case seen[e.Key]:
			r.say(at+e.Key, "the key is there twice")
		default:
			if err := s.Set(e.Key, e.Text); err != nil {
				r.say(at+e.Key, "%s", strings.TrimPrefix(err.Error(), e.Key+": "))
			}
		}
		seen[e.Key] = true
	}
	return s
}

// example is how a key may be written.
func example(key string) string {
	values := []string{"100Mbit/s", "10Mbit/s", "51ms", "2ms", "0.1%", "200ms", "1500B", "cubic", "2"}
	return key + ": " + values[slices.Index(Keys(), key)]
}
