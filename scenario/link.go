package scenario

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"weir/link"
)

// Links are the emulated links between clients and service: one that may have
// no name, or several with names. None: the network as it is.
type Links []link.Named

// Sites returns the links at whose far ends there are clients: all but the trunks.
func (l Links) Sites() []link.Named { return link.Sites(l) }

// Over returns the names of the links that lead over the trunk of that name, none if it is no trunk.
func (l Links) Over(trunk string) []string { return link.Over(l, trunk) }

// links decodes the keys of one link, or the names of several with their keys.
func (d *decoder) links(n *node, path string, to *Links) {
	if n.kind != mapping || len(n.entries) == 0 {
		d.say(n.at, "%s: %s: describe the link, as in {rate: 100Mbit/s, rtt: 10ms}, or omit it", path, nothingElse(n))
		return
	}
	named := func(e entry) bool { return e.value.kind == mapping && !slices.Contains(link.Keys(), e.key) }
	if !slices.ContainsFunc(n.entries, named) {
		one := link.Named{}
		d.value(n, path, reflect.ValueOf(&one.Spec).Elem())
		*to = Links{one}
		return
	}
	for _, e := range n.entries {
		if slices.Contains(link.Keys(), e.key) {
			d.say(e.at, "%s: keys of one link are mixed with names of several; give each link a name, as in {cern: {rate: 1Gbit/s}, home: "+
				"{rate: 50Mbit/s}}", join(path, e.key))
			continue
		}
		if e.value.kind == mapping && len(e.value.entries) == 0 {
			d.say(e.at, "%s: an empty map; describe the link, as in {rate: 100Mbit/s, rtt: 10ms}", join(path, e.key))
			continue
		}
		one := link.Named{Name: e.key}
		d.value(e.value, join(path, e.key), reflect.ValueOf(&one.Spec).Elem())
		*to = append(*to, one)
	}
}

// links checks that there are such links, and a network that they can lead
// over.
func (c *checker) links() {
	if len(c.Links) == 0 {
		return
	}
	if joined, ok := link.Check(c.Links).(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			if key, ok := errors.AsType[*link.KeyError](err); ok {
				c.say(strings.TrimSuffix("link."+key.Key, "."), "%s", key.Text)
			}
		}
	}
	switch scheme := c.scheme(); scheme {
	case "file", "simulated":
		c.say("link", "clients of %s:// use no network; omit link", scheme)
	}
}
