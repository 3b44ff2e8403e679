package challenge

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"weir/internal/document"
	"weir/internal/unit"
	"weir/storage"
)

// webSchemes returns the schemes of HTTP and WebDAV; rootSchemes those of XRootD.
func webSchemes() []string  { return []string{"davs", "https", "http", "dav"} }
func rootSchemes() []string { return []string{"root", "roots"} }

// sites checks the sites.
func (c *checker) sites() {
	if c.doc.Unread("sites") {
		return
	}
	c.refuse(len(c.Sites) < 2 || len(c.Sites) > maxSites, "sites", "%d; a challenge has 2 to %d", len(c.Sites), maxSites)
	names, folders := map[string]int{}, map[string]int{}
	for i := range c.Sites {
		s := &c.Sites[i]
		at := fmt.Sprintf("sites.%d", i)
		first, again := names[s.Name]
		switch {
		case s.Name == "":
			c.say(at+".name", "missing; name the site")
		case !properName.MatchString(s.Name):
			c.say(at+".name", "%s is not a name; use up to 64 letters, digits, dots, _ and -", document.Quote(s.Name))
		case again:
			c.say(at+".name", "%s is repeated, first as sites.%d; give each site its own name", s.Name, first)
		}
		names[s.Name] = i
		c.folders(at, s)
		for key, text := range map[string]string{".url": s.URL, ".root": s.Root} {
			u, err := url.Parse(text)
			if err != nil || u.Host == "" {
				continue // missing, or reported already
			}
			if other, same := folders[Folder(u)]; same && other != i {
				c.say(at+key, "%s has the same folder; give each site a folder of its own", c.Sites[other].Name)
			}
			folders[Folder(u)] = i
		}
		c.refuse(c.doc.Has(at+".in_flight") && s.InFlight < 1, at+".in_flight", "%d; use 1 or more, or omit it", s.InFlight)
	}
}

// folders checks the URLs of a site.
func (c *checker) folders(path string, s *Site) {
	if s.URL == "" {
		c.say(path+".url", "missing; name the folder for the challenge, as in davs://storage.example.org/dteam/dc27")
	} else if c.url(path+".url", s.URL, slices.Concat(webSchemes(), rootSchemes())) {
		c.inClear(path, s.URL, s.Auth)
	}
	if s.Root != "" {
		c.url(path+".root", s.Root, rootSchemes())
	}
}

// Folder returns host, port and path of a URL in one spelling.
func Folder(u *url.URL) string {
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "dav": "80", "https": "443", "davs": "443"}[u.Scheme], "1094")
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port) + path.Clean("/"+u.Path)
}

// scheme returns the scheme of a URL, "" if it is not one.
func scheme(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Scheme
}

// inClear reports tokens and passwords that would be sent to another machine over plain HTTP.
func (c *checker) inClear(path, text string, a storage.Auth) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "dav" || a.Insecure {
		return
	}
	secret := a.Method == storage.TokenAuth || a.Method == storage.BasicAuth ||
		a.TokenFile+a.TokenVariable+a.PasswordFile+a.PasswordVariable != ""
	ip, err := netip.ParseAddr(u.Hostname())
	here := u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	c.refuse(secret && !here, path+".url", "a token or password is not sent to %s over plain http; use https, or allow it with auth: "+
		"{insecure: true}", u.Hostname())
}

// rates checks that no site gets or sends more than it can, at the largest share of the profile.
func (c *checker) rates() {
	most := float64(c.mostShare())
	over := map[string]bool{} // sites and directions with a link that is too fast alone
	for k := range c.Links {
		l := &c.Links[k]
		from, to := &c.Sites[c.site(l.From)], &c.Sites[c.site(l.To)]
		for _, end := range []struct {
			site *Site
			key  string
			cap  unit.Bitrate
		}{{from, "out", from.Out}, {to, "in", to.In}} {
			if x := float64(l.Rate) * most; end.cap > 0 && x > float64(end.cap) {
				over[end.site.Name+"."+end.key] = true
				c.sayLink(k, "rate", "%s%s, but %s of %s is %s; lower the rate or correct %s%s", both(x), c.atMost(), end.key, end.site.Name,
					both(float64(end.cap)), end.key, eighth(x, float64(end.cap)))
			}
		}
	}
	in, out := c.sums()
	for i := range c.Sites {
		s := &c.Sites[i]
		for _, end := range []struct {
			key, way string
			cap      unit.Bitrate
			sum      float64
		}{{"in", "to", s.In, in[i]}, {"out", "from", s.Out, out[i]}} {
			if x := end.sum * most; end.cap > 0 && x > float64(end.cap)*(1+1e-9) && !over[s.Name+"."+end.key] {
				c.say(fmt.Sprintf("sites.%d.%s", i, end.key), "the links %s %s sum to %s%s, more than its %s of %s; lower rates or shares, "+
					"or correct %s%s", end.way, s.Name, both(x), c.atMost(), end.key, both(float64(end.cap)), end.key,
					eighth(x, float64(end.cap)))
			}
		}
	}
}

// sums returns the sums of the target rates to and from each site.
func (c *Challenge) sums() (in, out []float64) {
	in, out = make([]float64, len(c.Sites)), make([]float64, len(c.Sites))
	index := c.siteIndex()
	for i := range c.Links {
		l := &c.Links[i]
		in[index[l.To]] += float64(l.Rate)
		out[index[l.From]] += float64(l.Rate)
	}
	return in, out
}

// siteIndex returns the indices of the sites by their names.
func (c *Challenge) siteIndex() map[string]int {
	index := make(map[string]int, len(c.Sites))
	for i := range c.Sites {
		index[c.Sites[i].Name] = i
	}
	return index
}

// both writes a rate of bits per second in bits and in bytes.
func both(bits float64) string { return unit.Bits(bits/8) + " (" + unit.Bytes(bits/8) + "/s)" }

// eighth is a hint at bits and bytes that were confused, if that can explain a rate above a limit.
func eighth(rate, limit float64) string {
	if rate/8 > limit {
		return ""
	}
	return fmt.Sprintf(". Divided by 8 it fits: check for MB/s where Mbit/s was meant, here %s", both(rate/8))
}

// atMost names the largest share of the profile, if it is not 100%.
func (c *checker) atMost() string {
	if s := c.mostShare(); s != 1 {
		return " at " + s.String()
	}
	return ""
}

// space checks that each site has the space that it certainly needs.
func (c *checker) space() {
	e := c.Estimate()
	for i := range e.Sites {
		s := &e.Sites[i]
		limit := float64(c.Sites[i].Space)
		c.refuse(limit > 0 && s.SpaceLeast > limit, fmt.Sprintf("sites.%d.space", i), "%s needs %s: %s of source files, and %s of copies "+
			"that are written or stay for files.linger; %s are allowed. Use smaller or fewer files, a shorter linger, or more space", s.Name,
			unit.Bytes(s.SpaceLeast), unit.Bytes(s.Sources), unit.Bytes(s.SpaceLeast-s.Sources), unit.Bytes(limit))
	}
}
