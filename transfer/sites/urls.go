package sites

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"strings"

	"weir/internal/tpc"
	"weir/transfer/catalog"
	"weir/transfer/catalog/store"
	"weir/transfer/fts"
	"weir/transfer/remote"
)

// URLs finds the sites of the URLs of a job. A site without an agent that an administrator has
// added contains the URLs below its own; other endpoints become sites as they appear, so that they
// have limits and are probed.
type URLs struct {
	c     *Registry
	known map[string]string // sites without a path, by scheme and host
}

// URLs returns the sites of the URLs of a job.
func (c *Registry) URLs() *URLs { return &URLs{c, map[string]string{}} }

// Of returns the site of a URL of a job and the path below it.
func (s *URLs) Of(ctx context.Context, u *url.URL) (site, path string, err error) {
	server := fts.Server(u)
	base := u.Scheme + "://" + server
	if name := s.known[base]; name != "" {
		return name, strings.TrimLeft(u.Path, "/"), nil
	}
	site, path, inside := s.c.sites.Of(u, s.c.conf.KnownSites)
	if site == "" {
		if site, err = s.add(ctx, u, base); err != nil {
			return "", "", err
		}
	}
	if !inside {
		s.known[base] = site
	}
	return site, path, nil
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "root": "1094", "roots": "1094"}[u.Scheme]
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}

// add adds the endpoint of a URL, and returns the name of the site.
func (s *URLs) add(ctx context.Context, u *url.URL, base string) (string, error) {
	name := NameOf(u)
	if other, known := s.c.sites.Get(name); known && other.URL != base {
		h := fnv.New32a()
		_, _ = h.Write([]byte(base)) // never fails
		name = fmt.Sprintf("%.50s-%08x", name, h.Sum32())
	}
	return name, s.AddAs(ctx, name, u, base)
}

// AddAs adds the endpoint of a URL as a site with a name.
func (s *URLs) AddAs(ctx context.Context, name string, u *url.URL, base string) error {
	if s.c.conf.KnownSites {
		return fmt.Errorf("%w: %.200s is not a site of this service (weir site add)", tpc.ErrRefused, base)
	}
	guard := tpc.Guard{Hosts: []string{"*"}, Upto: s.c.conf.JobArea}
	if err := guard.Check(remote.Web(u)); err != nil {
		return err
	}
	s.c.naming.Lock()
	defer s.c.naming.Unlock()
	site := catalog.Site{Name: name, Kind: catalog.URLSite, URL: base}
	if err := s.c.catalog.AddSite(ctx, site); err != nil && !errors.Is(err, store.ErrExists) {
		return err
	}
	if err := s.c.catalog.Saw(ctx, name, s.c.now(), true, -1, ""); err != nil { // the first probe may correct it
		return err
	}
	s.c.log.Info("endpoint of a job added as a site", "site", name, "url", base)
	if err := s.c.Read(ctx); err != nil {
		return err
	}
	s.c.sites.Name(name)
	return nil
}

// NameOf returns a name for the site of a URL.
func NameOf(u *url.URL) string {
	plain := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}
	name := strings.Trim(strings.Map(plain, strings.ReplaceAll(hostPort(u), ":", "-")), ".-")
	if u.Scheme == "https" {
		name = strings.TrimSuffix(name, "-443")
	}
	return name[:min(len(name), 60)]
}
