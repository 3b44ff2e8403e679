package challenge

import (
	"fmt"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"weir/internal/document"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
)

// format returns the rules for reading challenges.
func format() document.Format {
	return document.Format{
		Noun: "challenge", Title: "weir challenge", About: "A data challenge: see docs/challenge.md.", SetExample: "files.size=10MiB",
		TooLong: "; write many links as a matrix, which is a file of its own",
		Empty:   "; give at least sites, links and profile",
		Decode:  workload.Decode,
		Shape:   shape,
		Unknown: func(d *document.Decoder, e document.Entry, path string) bool {
			text, secret := document.SecretKeys()[strings.ToLower(e.Key)]
			if secret {
				d.Say(e.At, "%s: a challenge must not contain secrets; %s", document.Join(path, e.Key), text)
			}
			return secret
		},
	}
}

// Is reports whether data is a data challenge and not a scenario: it has the key sites.
func Is(data []byte) bool { return Has(data, "sites") }

// Has reports whether data is a YAML map with a key.
func Has(data []byte, key string) bool {
	root := document.NewReader(format(), "").Read(data)
	return root != nil && root.Get(key) != nil
}

// Read reads the challenge in the file at path, and the files that it names. vars are the --var
// options and sets the --set options of the command line. Its error is of type document.Mistakes
// unless the file cannot be read.
func Read(path string, vars map[string]string, sets []string) (*Challenge, error) {
	data, err := document.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, vars, sets)
}

// Parse reads a challenge from data, and the files that it names. name is the path of the file:
// mistakes contain it, and the paths of files in the challenge are relative to its folder. Its error
// is of type document.Mistakes. Credentials are not read: see Credentials.
func Parse(name string, data []byte, vars map[string]string, sets []string) (*Challenge, error) {
	r := document.NewReader(format(), name)
	root := r.Read(data)
	if root == nil {
		return nil, r.Mistakes.Err()
	}
	if root.Kind != document.Map {
		r.Say(root.At, "%s; a challenge is a map of keys such as sites, links and profile", root.Describe())
		return nil, r.Mistakes.Err()
	}
	for _, set := range sets {
		r.Apply(root, set, nil)
	}
	r.Fill(root, vars)
	c := &Challenge{}
	format().SetDefaults(c)
	d := &document.Document{Decoder: document.Decoder{Reader: r, Where: map[string]document.Place{}}}
	d.Fields(root, "", reflect.ValueOf(c).Elem())
	k := &checker{Challenge: c, doc: d}
	k.resolve()
	k.complete()
	k.links()
	k.check()
	if err := d.Err(); err != nil {
		return nil, err
	}
	c.Inject.Auth = c.Inject.Auth.Discovered()
	for i := range c.Sites {
		c.Sites[i].Auth = c.Sites[i].Auth.Discovered()
	}
	return c, nil
}

// resolve makes paths relative to the challenge's folder usable from the current folder.
func (c *checker) resolve() {
	for key, p := range c.paths() {
		*p = c.doc.Where[key].PathFrom(c.doc.File, *p)
	}
}

// paths returns pointers to the paths of files on this machine, by their keys.
func (c *Challenge) paths() map[string]*string {
	all := map[string]*string{"matrix": &c.Matrix, "distances": &c.Distances}
	for i := range c.Limits {
		all[fmt.Sprintf("limits.%d", i)] = &c.Limits[i]
	}
	add := func(path string, a *storage.Auth) {
		for key, p := range a.Files() {
			all[path+".auth."+key] = p
		}
	}
	add("inject", &c.Inject.Auth)
	for i := range c.Sites {
		add(fmt.Sprintf("sites.%d", i), &c.Sites[i].Auth)
	}
	return all
}

// Anywhere makes the paths of files on this machine absolute, so that the challenge has the same
// meaning in any folder.
func (c *Challenge) Anywhere() error {
	for key, path := range c.paths() {
		if *path == "" {
			continue
		}
		whole, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		*path = whole
	}
	return nil
}

// complete fills in the defaults of sites and hosts.
func (c *checker) complete() {
	for i := range c.Sites {
		s := &c.Sites[i]
		if s.RSE == "" {
			s.RSE = s.Name
		}
		for k := range s.Hosts {
			completeHost(&s.Hosts[k], monitor.RoleServer, s.Name)
		}
	}
	for i := range c.Hosts {
		completeHost(&c.Hosts[i], monitor.RoleOther, thisMachine)
	}
	if !slices.ContainsFunc(c.Hosts, local) {
		c.Hosts = append(c.Hosts, monitor.Host{Name: thisMachine, Role: monitor.RoleClient})
	}
}

// thisMachine is the name of the host that is monitored by default.
const thisMachine = "localhost"

// local reports whether the figures of a host come from this machine's /proc.
func local(h monitor.Host) bool { return h.NodeExporter+h.XRootDReport == "" && !h.Backend() }

// completeHost fills in the role of a host, and its name: that of the URL of its page, or here on
// this machine.
func completeHost(h *monitor.Host, role monitor.Role, here string) {
	if h.Role == "" {
		h.Role = role
	}
	if h.Name != "" {
		return
	}
	if u, err := url.Parse(h.NodeExporter); err == nil && h.NodeExporter != "" {
		h.Name = u.Hostname()
	} else if local(*h) {
		h.Name = here
	}
}
