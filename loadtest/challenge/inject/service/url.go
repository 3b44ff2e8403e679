package service

import (
	"fmt"
	"net/url"
	"strings"

	"weir/loadtest/challenge"
)

// A Pair has the two sites of a link.
type Pair struct {
	From, To *challenge.Site
}

// Pairs returns the sites of each link of a challenge. It returns an error for a link to an unknown
// site.
func Pairs(c *challenge.Challenge) ([]Pair, error) {
	sites := map[string]*challenge.Site{}
	for i := range c.Sites {
		sites[c.Sites[i].Name] = &c.Sites[i]
	}
	all := make([]Pair, len(c.Links))
	for i := range c.Links {
		l := &c.Links[i]
		if all[i] = (Pair{sites[l.From], sites[l.To]}); all[i].From == nil || all[i].To == nil {
			return nil, fmt.Errorf("links[%d]: %s: the challenge has no such site", i, l.Name())
		}
	}
	return all, nil
}

// URLOf returns the URL of a file at a site by the protocol of a link. path is below the URL of the
// site, unescaped. Double slashes of the site's URL are kept: with root they begin an absolute path.
func URLOf(s *challenge.Site, by challenge.Protocol, path string) string {
	return strings.TrimSuffix(s.FolderURL(by), "/") + "/" + (&url.URL{Path: strings.TrimPrefix(path, "/")}).EscapedPath()
}
