package challenge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
)

// maxImport bounds the size of a file of Rucio or FTS, in bytes.
const maxImport = 64 << 20

// An rseDistance is the distance of two RSEs. Rucio moves nothing between RSEs whose distance is
// null.
type rseDistance struct {
	Source   string `json:"src_rse"` // in lists; in exports, the keys of the maps
	Dest     string `json:"dest_rse"`
	Distance *int   `json:"distance"`
}

// distances checks that Rucio has a distance for each link, if there is a file of distances.
func (c *checker) distances() {
	if c.Distances == "" || c.doc.Unread("distances") {
		return
	}
	known, err := readDistances(c.Distances)
	if err != nil {
		c.say("distances", "%v", err)
		return
	}
	rse := map[string]string{}
	for i := range c.Sites {
		rse[c.Sites[i].Name] = c.Sites[i].RSE
	}
	for k := range c.Links {
		from, to := rse[c.Links[k].From], rse[c.Links[k].To]
		if !known[[2]string{from, to}] {
			c.sayLink(k, "from", "Rucio has no distance from %s to %s in %s, so it moves nothing there; add one in Rucio, omit the link, or "+
				"correct the rse of the sites", from, to, c.Distances)
		}
	}
}

// readDistances returns the pairs of RSEs that have a distance. The file is the answer to GET
// /export of Rucio, its part distances, or a list of answers to GET /rses/SOURCE/distances/DEST.
func readDistances(path string) (map[[2]string]bool, error) {
	data, err := readImport(path)
	if err != nil {
		return nil, err
	}
	const form = "it is neither the answer to GET /export of Rucio nor a list of distances with src_rse and dest_rse"
	pairs := map[[2]string]bool{}
	if bytes.HasPrefix(data, []byte("[")) {
		var list []rseDistance
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, form, err)
		}
		for _, d := range list {
			if d.Source == "" || d.Dest == "" {
				return nil, fmt.Errorf("%s: %s", path, form)
			}
			if d.Distance != nil {
				pairs[[2]string{d.Source, d.Dest}] = true
			}
		}
		return pairs, nil
	}
	var export struct {
		Distances map[string]map[string]rseDistance `json:"distances"`
	}
	if err := json.Unmarshal(data, &export); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", path, form, err)
	}
	if export.Distances == nil {
		if err := json.Unmarshal(data, &export.Distances); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, form, err)
		}
	}
	for from, all := range export.Distances {
		for to, d := range all {
			if d.Distance != nil {
				pairs[[2]string{from, to}] = true
			}
		}
	}
	return pairs, nil
}

// readImport reads a JSON file, without white space at its beginning.
func readImport(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxImport+1))
	switch data = bytes.TrimSpace(data); {
	case err != nil:
		return nil, err
	case len(data) > maxImport:
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxImport)
	case len(data) == 0:
		return nil, fmt.Errorf("%s is empty", path)
	}
	return data, nil
}

// An ftsLink is the limit of a link of FTS: an element of the answer to GET /config/links. A storage
// is scheme://host, or * for all.
type ftsLink struct {
	Source    string `json:"source"`
	Dest      string `json:"destination"`
	MaxActive int    `json:"max_active"`
}

// An ftsStorage has the limits of a storage of FTS: a value of the answer to GET /config/se.
type ftsStorage struct {
	Info struct {
		In  *int `json:"inbound_max_active"`
		Out *int `json:"outbound_max_active"`
	} `json:"se_info"`
}

// ftsLimits are the limits of an FTS.
type ftsLimits struct {
	links    []ftsLink
	storages map[string]ftsStorage
}

// serviceLimits lowers in_flight of links and sites to the limits of FTS, if there are files of
// limits.
func (c *checker) serviceLimits() {
	all := ftsLimits{storages: map[string]ftsStorage{}}
	for i, path := range c.Limits {
		if err := all.read(path); err != nil {
			c.say(fmt.Sprintf("limits.%d", i), "%v", err)
		}
	}
	for k := range c.Links {
		l := &c.Links[k]
		from, to := c.site(l.From), c.site(l.To)
		if from < 0 || to < 0 {
			continue
		}
		l.InFlight = lower(l.InFlight, all.link(storageName(c.Sites[from].FolderURL(l.Protocol)), storageName(c.Sites[to].FolderURL(l.Protocol))))
		l.InFlight = lower(l.InFlight, all.storage(storageName(c.Sites[from].FolderURL(l.Protocol))).Info.Out)
		l.InFlight = lower(l.InFlight, all.storage(storageName(c.Sites[to].FolderURL(l.Protocol))).Info.In)
	}
}

// read adds the limits of a file.
func (f *ftsLimits) read(path string) error {
	data, err := readImport(path)
	if err != nil {
		return err
	}
	if bytes.HasPrefix(data, []byte("[")) {
		var list []ftsLink
		if err := json.Unmarshal(data, &list); err != nil {
			return fmt.Errorf("%s: not the answer to GET /config/links of FTS: %w", path, err)
		}
		f.links = append(f.links, list...)
		return nil
	}
	var all map[string]ftsStorage
	if err := json.Unmarshal(data, &all); err != nil {
		return fmt.Errorf("%s: neither the answer to GET /config/links nor to GET /config/se of FTS: %w", path, err)
	}
	for name, s := range all {
		if name != everySite && !strings.Contains(name, "://") {
			return errors.New(path + ": not the answer to GET /config/se of FTS: its keys are storages such as davs://storage.example.org")
		}
		f.storages[strings.TrimSuffix(name, "/")] = s
	}
	return nil
}

// link returns the limit of copies at once of a link: the first of the limits of both storages, of
// one of them and *, and of all links.
func (f *ftsLimits) link(from, to string) *int {
	for _, pair := range [][2]string{{from, to}, {from, everySite}, {everySite, to}, {everySite, everySite}} {
		for i := range f.links {
			if l := &f.links[i]; l.Source == pair[0] && l.Dest == pair[1] {
				return &l.MaxActive
			}
		}
	}
	return nil
}

// storage returns the limits of a storage, or those of all storages.
func (f *ftsLimits) storage(name string) ftsStorage {
	if s, ok := f.storages[name]; ok {
		return s
	}
	return f.storages[everySite]
}

// lower returns the lower one of a number and a limit, if there is a limit above 0.
func lower(n int, limit *int) int {
	if limit == nil || *limit <= 0 {
		return n
	}
	return min(n, *limit)
}

// storageName returns the name that FTS has for the storage of a URL: scheme://host.
func storageName(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Hostname()
}
