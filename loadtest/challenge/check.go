package challenge

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"weir/internal/document"
	"weir/internal/unit"
	"weir/monitor"
)

// A checker finds contradictions and invalid values in a challenge that is read.
type checker struct {
	*Challenge
	doc     *document.Document
	pairs   map[[2]string]int // indices of links
	origins []origin          // of links
}

// longest is the longest duration of a challenge.
const longest = 366 * 24 * time.Hour

// maxInFlight is the largest number of copies of a link at once.
const maxInFlight = 10_000

// properName matches the names of challenges and sites.
var properName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// check reports the mistakes of the challenge.
func (c *checker) check() {
	c.refuse(!properName.MatchString(c.Name), "name", "%s is not a name; use up to 64 letters, digits, dots, _ and -", document.Quote(c.Name))
	c.injection()
	c.sites()
	c.linkRules()
	c.distances()
	c.serviceLimits()
	c.profile()
	c.files()
	c.refuse(c.Timeout <= 0 || time.Duration(c.Timeout) > longest, "timeout", "%v; use more than 0, up to 366d", c.Timeout)
	seen := map[string]bool{}
	c.hosts("", c.Hosts, seen)
	for i := range c.Sites {
		c.hosts(fmt.Sprintf("sites.%d", i), c.Sites[i].Hosts, seen)
	}
	if c.doc.Err() == nil {
		c.rates()
		c.space()
	}
}

// say reports a mistake of the value of path, unless the value could not be read.
func (c *checker) say(path, format string, args ...any) {
	if !c.doc.Unread(path) {
		c.doc.Mistake(path, errors.New(path+": "+fmt.Sprintf(format, args...)))
	}
}

// refuse calls say if bad is true.
func (c *checker) refuse(bad bool, path, format string, args ...any) {
	if bad {
		c.say(path, format, args...)
	}
}

// inFile reports a mistake in another file.
func (c *checker) inFile(file string, line, column int, format string, args ...any) {
	c.doc.Mistakes = append(c.doc.Mistakes, &document.Mistake{File: file, Line: line, Column: column, Text: fmt.Sprintf(format, args...)})
}

// sayLink reports a mistake of a link at the place that gave it its rate, or at a key of its entry
// in the list.
func (c *checker) sayLink(k int, key, format string, args ...any) {
	from := c.origins[k]
	text := c.Links[k].Name() + ": " + fmt.Sprintf(format, args...)
	if from.path == "" || from.file != "" && key == "rate" && !c.doc.Has(from.path+".rate") {
		c.inFile(from.file, from.at.Line, from.at.Column, "%s", text)
		return
	}
	c.say(strings.TrimSuffix(from.path+"."+key, "."), "%s", text)
}

// site returns the index of the site of that name, -1 if there is none.
func (c *Challenge) site(name string) int {
	return slices.IndexFunc(c.Sites, func(s Site) bool { return s.Name == name })
}

func (c *checker) siteNames() []string {
	names := make([]string, len(c.Sites))
	for i := range c.Sites {
		names[i] = c.Sites[i].Name
	}
	return names
}

// injection checks the service that makes the copies.
func (c *checker) injection() {
	in := &c.Inject
	if c.doc.Unread("inject.by") {
		return
	}
	c.refuse(in.By == Direct && in.URL != "", "inject.url", "weir sends the requests itself with by: direct; omit url, or use by: fts")
	if in.By != Direct {
		if in.URL == "" {
			c.say("inject.url", "missing; name the REST API of %s, as in https://fts3.example.org:8446", in.By)
		} else {
			c.url("inject.url", in.URL, []string{"https", "http"})
		}
		c.inClear("inject", in.URL, in.Auth)
	}
	c.refuse(in.By == Rucio && in.Account == "", "inject.account", "missing; name the account of Rucio that owns the rules")
	c.refuse(in.By == Rucio && in.Scope == "", "inject.scope", "missing; name a scope of Rucio in which the account may register files")
	c.refuse(in.By != Rucio && in.Account != "", "inject.account", "applies to by: rucio; omit it")
	c.refuse(in.By != Rucio && in.Scope != "", "inject.scope", "applies to by: rucio; omit it")
}

// url checks a URL and its scheme.
func (c *checker) url(path, text string, schemes []string) bool {
	u, err := url.Parse(text)
	if parse, ok := errors.AsType[*url.Error](err); ok {
		err = parse.Err // without the text, which may hold a password
	}
	switch {
	case err != nil:
		c.say(path, "not a URL; %v", err)
		return false
	case u.Scheme == "" || !slices.Contains(schemes, u.Scheme):
		c.say(path, "%s has the scheme %s; use one of %s, as in %s://storage.example.org/data", document.Quote(u.Redacted()),
			document.Quote(u.Scheme), strings.Join(schemes, ", "), schemes[0])
		return false
	case u.Hostname() == "":
		c.say(path, "%s has no host; write it as in %s://storage.example.org/data", document.Quote(text), u.Scheme)
		return false
	case u.User != nil:
		c.say(path, "a challenge must not contain secrets; omit the part before the @, and use auth")
		return false
	case u.RawQuery != "" || u.Fragment != "":
		c.say(path, "a folder has no part after ? or #; omit it, and use auth for credentials")
		return false
	}
	return true
}

// profile checks the stages.
func (c *checker) profile() {
	if c.doc.Unread("profile") {
		return
	}
	c.refuse(len(c.Profile) == 0, "profile", "missing; write stages, as in [{for: 10m, at: 50%%}, {for: 1h, at: 100%%}]")
	most, all := Share(0), time.Duration(0)
	for i, s := range c.Profile {
		path := fmt.Sprintf("profile.%d", i)
		c.refuse(!c.doc.Has(path+".at"), path+".at", "missing; write the share of the target rates, as in 50%%")
		c.refuse(s.For <= 0 || time.Duration(s.For) > longest, path+".for", "%v; use more than 0, up to 366d", s.For)
		most = max(most, s.At)
		all += min(time.Duration(s.For), longest)
	}
	c.refuse(len(c.Profile) > 0 && most == 0, "profile", "all stages are pauses; give at least one a share above 0%%")
	c.refuse(all > longest, "profile", "%v; use up to 366d together", unit.Duration(all))
}

// files checks the files that are copied.
func (c *checker) files() {
	f := &c.Files
	c.refuse(f.Size.Most() <= 0, "files.size", "%s; a file has at least one byte", f.Size.Text())
	c.refuse(f.Sources < 1 || f.Sources > 100_000, "files.sources", "%d; use 1 to 100000", f.Sources)
	c.refuse(time.Duration(f.Linger) > longest, "files.linger", "%v; use up to 366d", f.Linger)
}

// hosts checks the machines of a site, or those of the challenge if path is empty. seen has the names
// of those that were checked.
func (c *checker) hosts(path string, hosts []monitor.Host, seen map[string]bool) {
	for i := range hosts {
		h := &hosts[i]
		at := document.Join(path, fmt.Sprintf("hosts.%d", i))
		c.refuse(h.Name == "", at+".name", "missing; give a name to a host that is monitored remotely")
		c.refuse(h.Name != "" && seen[h.Name], at+".name", "%s is repeated; give each host its own name", document.Quote(h.Name))
		seen[h.Name] = true
		if h.NodeExporter != "" {
			u, err := url.Parse(h.NodeExporter)
			c.refuse(err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil, at+".node_exporter",
				"not the URL of a page; write it without a password, as in http://storage.example.org:9100/metrics")
			c.refuse(len(h.Processes)+len(h.Pids)+len(h.Groups) > 0, at,
				"processes, pids and groups are monitored on this machine only; omit them or node_exporter")
		}
	}
}
