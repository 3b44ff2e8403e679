package scenario

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"weir/internal/document"
	"weir/link"
)

// Links are the emulated links between clients and service: a single link, whose name may be empty,
// or several links with names. Without links the network is not changed.
type Links []link.Named

// Sites returns the links that have clients at their far ends: all links except the trunks.
func (l Links) Sites() []link.Named { return link.Sites(l) }

// Over returns the names of the links that lead over the trunk of that name; it is empty if the
// link is not a trunk.
func (l Links) Over(trunk string) []string { return link.Over(l, trunk) }

// links decodes the keys of one link, or the names of several links with their keys.
func (d *decoder) links(n *document.Node, path string, to *Links) {
	if n.Kind != document.Map || len(n.Entries) == 0 {
		d.Say(n.At, "%s: %s: describe the link, as in {rate: 100Mbit/s, rtt: 10ms}, or omit it", path, nothingElse(n))
		return
	}
	named := func(e document.Entry) bool {
		return e.Value.Kind == document.Map && !slices.Contains(link.Keys(), e.Key)
	}
	if !slices.ContainsFunc(n.Entries, named) {
		one := link.Named{}
		d.Value(n, path, reflect.ValueOf(&one.Spec).Elem())
		*to = Links{one}
		return
	}
	for _, e := range n.Entries {
		if slices.Contains(link.Keys(), e.Key) {
			d.Say(e.At, "%s: keys of one link are mixed with names of several; give each link a name, as in {cern: {rate: 1Gbit/s}, home: "+
				"{rate: 50Mbit/s}}", document.Join(path, e.Key))
			continue
		}
		if e.Value.Kind == document.Map && len(e.Value.Entries) == 0 {
			d.Say(e.At, "%s: an empty map; describe the link, as in {rate: 100Mbit/s, rtt: 10ms}", document.Join(path, e.Key))
			continue
		}
		one := link.Named{Name: e.Key}
		d.Value(e.Value, document.Join(path, e.Key), reflect.ValueOf(&one.Spec).Elem())
		*to = append(*to, one)
	}
}

// links checks the properties of the links, and that the clients use a network.
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
