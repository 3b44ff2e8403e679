package challenge

import (
	"slices"
	"strings"

	"weir/storage"
)

// maxRate is the highest target of a link, in bit/s.
const maxRate = 1e15

// linkRules checks the links.
func (c *checker) linkRules() {
	switch {
	case c.doc.Unread("links") && len(c.Links) == 0:
	case len(c.Links) == 0 && !c.failed():
		c.say("links", "missing; name links, as in [{from: A, to: B, rate: 1Gbit/s}], or a CSV file with matrix")
	case len(c.Links) > maxLinks:
		c.say("links", "%d; use at most %d", len(c.Links), maxLinks)
	}
	for k := range c.Links {
		l := &c.Links[k]
		if l.From == l.To {
			c.sayLink(k, "to", "a link leads to another site; omit it")
			continue
		}
		if !(l.Rate > 0) && !c.unread(k, "rate") {
			c.sayLink(k, "rate", "missing or 0; write a rate with its unit, as in 400Mbit/s or 50MB/s, or omit the link")
		}
		if l.Rate > maxRate {
			c.sayLink(k, "rate", "%s is more than any line carries; use at most %s", both(float64(l.Rate)), both(maxRate))
		}
		if l.InFlight < 1 || l.InFlight > maxInFlight {
			c.sayLink(k, "in_flight", "%d copies at once; use 1 to %d", l.InFlight, maxInFlight)
		}
		if l.Streams < 0 || l.Streams > 64 {
			c.sayLink(k, "streams", "%d connections of a copy; use up to 64, or 0 to let the site choose", l.Streams)
		}
		if l.SciTag != 0 && (l.SciTag < storage.LeastSciTag || l.SciTag > storage.MostSciTag) {
			c.sayLink(k, "scitag", "%d is not a flow label; use %d to %d, or omit it", l.SciTag, storage.LeastSciTag, storage.MostSciTag)
		}
		c.protocol(k, l)
	}
}

// failed reports whether the matrix or the list of links has mistakes.
func (c *checker) failed() bool { return len(c.doc.Mistakes) > 0 }

// unread reports whether a key of link k in the list could not be read.
func (c *checker) unread(k int, key string) bool {
	return c.origins[k].path != "" && c.doc.Unread(c.origins[k].path+"."+key)
}

// protocol checks that the sites of a link have URLs for its protocol.
func (c *checker) protocol(k int, l *Link) {
	for _, name := range []string{l.From, l.To} {
		i := c.site(name)
		if i < 0 {
			continue
		}
		s := &c.Sites[i]
		own := scheme(s.URL)
		switch {
		case own == "" || c.unread(k, "protocol"):
		case l.Protocol == XRootD && s.Root == "" && !slices.Contains(rootSchemes(), own):
			c.sayLink(k, "protocol", "copies by root need the folder of %s by root, and its url has %s; add root: root://... to the site, or use "+
				"protocol: davs", name, own)
		case l.Protocol == WebDAV && !slices.Contains(webSchemes(), own):
			c.sayLink(k, "protocol", "copies by davs need the folder of %s by %s, and its url has %s; use such a url, or protocol: root", name,
				strings.Join(webSchemes()[:2], " or "), own)
		}
	}
	if l.Protocol == XRootD && l.Mode == Push {
		c.sayLink(k, "mode", "copies by root are pulled by the destination; omit mode, or use protocol: davs")
	}
}

// FolderURL returns the URL of the folder of site s for copies of that protocol.
func (s *Site) FolderURL(p Protocol) string {
	if p == XRootD && s.Root != "" {
		return s.Root
	}
	return s.URL
}
