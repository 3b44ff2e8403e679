package challenge

import (
	"fmt"
	"reflect"
	"slices"

	"weir/internal/document"
	"weir/internal/tags"
)

// An origin is the place that gave a link its rate.
type origin struct {
	path string         // of the entry of links; "" for a cell of the matrix
	file string         // of the matrix
	at   document.Place // of the cell
}

// everySite stands for all sites in a link of a file.
const everySite = "*"

// links replaces the links of the file by all links with their properties: those of the matrix,
// changed and completed by those of the list.
func (c *checker) links() {
	listed := c.Links
	c.Links = nil
	c.matrix()
	entries := map[[2]string]int{}
	set := make([]map[string]bool, len(c.Links)) // keys that the list gives, by link
	for i := range listed {
		l := &listed[i]
		path := fmt.Sprintf("links.%d", i)
		if l.From == everySite || l.To == everySite || !c.named(path, l) {
			continue
		}
		pair := [2]string{l.From, l.To}
		if first, again := entries[pair]; again {
			c.say(path, "%s is repeated, first as links.%d; keep one", l.Name(), first)
			continue
		}
		entries[pair] = i
		k, known := c.pairs[pair]
		if !known {
			k = c.add(Link{From: l.From, To: l.To}, origin{path: path})
			set = append(set, nil)
		}
		set[k] = c.override(k, l, path, nil)
		c.origins[k].path = path
	}
	for i := range listed {
		c.everywhere(&listed[i], fmt.Sprintf("links.%d", i), set)
	}
	for i := range c.Links {
		format().SetDefaults(&c.Links[i])
	}
}

// add appends a link and returns its index.
func (c *checker) add(l Link, from origin) int {
	if c.pairs == nil {
		c.pairs = map[[2]string]int{}
	}
	c.Links, c.origins = append(c.Links, l), append(c.origins, from)
	c.pairs[[2]string{l.From, l.To}] = len(c.Links) - 1
	return len(c.Links) - 1
}

// named checks the names of the sites of a link of the list.
func (c *checker) named(path string, l *Link) bool {
	good := true
	for _, end := range []struct{ key, name string }{{"from", l.From}, {"to", l.To}} {
		switch {
		case end.name == everySite:
		case end.name == "":
			good = false
			c.say(path+"."+end.key, "missing; name a site")
		case c.site(end.name) < 0:
			good = false
			c.say(path+"."+end.key, "unknown site %s%s", document.Quote(end.name), document.Meant(end.name, c.siteNames()))
		}
	}
	return good
}

// override gives link k the properties of l that the file has at path, except those in but. It
// returns the keys.
func (c *checker) override(k int, l *Link, path string, but map[string]bool) map[string]bool {
	keys := map[string]bool{}
	from, to := reflect.ValueOf(l).Elem(), reflect.ValueOf(&c.Links[k]).Elem()
	for _, f := range tags.Fields(from.Type()) {
		if f.Key == "from" || f.Key == "to" || but[f.Key] || !c.doc.Has(path+"."+f.Key) {
			continue
		}
		keys[f.Key] = true
		if (f.Key == "in_flight" || f.Key == "scitag") && from.FieldByIndex(f.Index).IsZero() {
			c.say(path+"."+f.Key, "0; use a number above 0, or omit it for the default")
		}
		to.FieldByIndex(f.Index).Set(from.FieldByIndex(f.Index))
	}
	return keys
}

// everywhere gives the properties of a link with * to all links that it matches, unless they have
// their own.
func (c *checker) everywhere(l *Link, path string, set []map[string]bool) {
	if l.From != everySite && l.To != everySite || !c.named(path, l) {
		return
	}
	if c.doc.Has(path + ".rate") {
		c.say(path+".rate", "a rate belongs to one link, and %s stands for all sites; write a matrix, or a link for each pair", everySite)
		return
	}
	found := false
	for k := range c.Links {
		to := &c.Links[k]
		if slices.Contains([]string{everySite, to.From}, l.From) && slices.Contains([]string{everySite, to.To}, l.To) {
			found = true
			c.override(k, l, path, set[k])
		}
	}
	if !found {
		c.say(path, "%s matches no link; name links with their rates first, in the list or as a matrix", l.Name())
	}
}
