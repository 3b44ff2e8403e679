package lab

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed xrootd.cfg
var xrootdConf string

// MaxServers is the largest number of data servers of a redirector.
const MaxServers = 64

// XRootDConfig configures an XRootD service; its zero value is a valid configuration: a single
// server that requires no credential.
type XRootDConfig struct {
	Config
	// Version is the version of this system's XRootD or one of XRootDVersions. It may be shortened,
	// as in 6.2; "" is this system's.
	Version string
	// Servers is the number of data servers behind a redirector, at most MaxServers; 0 makes one server that stands
	// alone.
	Servers int
	// Lookup is the number of seconds for which a redirector makes clients wait for an unknown
	// file, such as each new file; 0 means 1, the minimum.
	Lookup int
	// Auth is the one way in which clients must prove who they are, at each server: "" or "none", "unix", "krb5",
	// "gsi" or "ztn" (which adds TLS).
	Auth string
	// Delegation has servers with gsi fetch files from others with the proxies that clients delegate (third-party copies of root://).
	Delegation bool
	// Copies has each server copy files from and to other HTTP servers on request (COPY, HTTP-TPC).
	// XRootD does so only with TLS, which this adds; plain http works as well.
	Copies bool
	// Authority is a system with TLS whose authority signs the certificates, so that both trust each other; nil makes
	// an authority for this system alone.
	Authority *System
	// Issuer and Keys are one more issuer of tokens that ztn trusts, whose paths begin at /data, and its JSON Web Key
	// Set; without Issuer there is the lab's alone. With it the audience https://se.example.org is accepted as well.
	Issuer string
	Keys   []byte
	// Macaroons makes each server issue and accept macaroons: they give the rights that these rules
	// (an authdb, as in "u * / a") give to the client that requests them. "" is a server without
	// them.
	Macaroons string
	// Users has each server map, over HTTPS, the lab's user with a certificate or a proxy to the
	// name User, which rules of Macaroons can allow something. It adds TLS, with RSA keys; the keys
	// of Authority must be of that kind as well.
	Users bool
	// IPv6 has one server without TLS answer at [::1] as well, which URL is of.
	IPv6 bool
	// Set are settings of each server, DIRECTIVE=VALUE with one of XRootDDirectives. It is an error if a server does
	// not understand one; the error has the server's words.
	Set []string
	// Extra has further lines for the configuration of each server, in XRootD's own language. Lines
	// that begin with "cms." are also for cmsd.
	Extra string

	root string // folder with the unpacked Version
}

// Start starts an XRootD service that supports root:// and HTTP on the same port and the checksums
// adler32, md5 and crc32c.
//
// URLs has "root" (also URL) and "http", with TLS "roots" and "https" as well; for a cluster they
// are the redirector's. With ztn, URL is the URL of "roots". Each server listens on every address,
// since XRootD has no setting for that, but refuses clients that do not come from 127.0.0.1.
func (c XRootDConfig) Start(ctx context.Context) (*System, error) {
	if err := c.complete(); err != nil {
		return nil, fmt.Errorf("lab: xrootd: %w", err)
	}
	if _, err := c.programs(c.Needs()); err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	program := "xrootd"
	if c.root != "" {
		program = "" // of this system's
	}
	s, err := c.launch(ctx, "xrootd", program, func(s *System, program string) { c.build(ctx, s, program) }, "admin", "run")
	if err != nil {
		return s, err
	}
	if line := ignoredDirectives(s, c.Set); line != "" {
		return nil, errors.Join(fmt.Errorf("lab: xrootd: a setting is not understood: %s", line), s.Stop())
	}
	return s, nil
}

// complete sets defaults and refuses invalid settings.
func (c *XRootDConfig) complete() error {
	c.Auth, c.Lookup = cmp.Or(c.Auth, "none"), cmp.Or(c.Lookup, 1)
	if !slices.Contains(XRootDAuths(), c.Auth) {
		return fmt.Errorf("authentication %q: use one of %s", c.Auth, strings.Join(XRootDAuths(), ", "))
	}
	if c.Servers < 0 || c.Servers > MaxServers {
		return fmt.Errorf("%d data servers: use 0 (one server alone) to %d", c.Servers, MaxServers)
	}
	if c.Lookup < 0 {
		return fmt.Errorf("lookup %d: use 1 second or more", c.Lookup)
	}
	if c.Version != "" {
		root, full, err := findXRootD(c.Version)
		if err != nil {
			return err
		}
		c.root, c.Version = root, full
	}
	lines, err := c.directives()
	if err != nil {
		return err
	}
	c.Extra = lines + c.Extra
	c.TLS = c.TLS || c.Auth == "ztn" || c.Copies || c.Users
	if c.Authority != nil && c.Authority.ca == nil {
		return fmt.Errorf("the authority of %s: it has none, start it with TLS", c.Authority.Name)
	}
	return nil
}

// XRootDAuths returns the values that XRootDConfig.Auth can have.
func XRootDAuths() []string { return []string{"none", "unix", "krb5", "gsi", "ztn"} }

// Needs lists the programs and libraries of the service.
// Needs returns the programs that it needs.
func (c XRootDConfig) Needs() []string {
	var programs []string
	if c.Version != "" {
		programs = append(programs, unpackedXRootD+c.Version)
	} else {
		programs = append(programs, "xrootd")
		if c.Servers > 0 {
			programs = append(programs, "cmsd")
		}
		if c.Copies {
			programs = append(programs, "libXrdHttpTPC-5.so")
		}
		if c.Auth == "ztn" {
			programs = append(programs, "libXrdAccSciTokens-5.so")
		}
	}
	switch c.Auth {
	case "krb5":
		programs = append(programs, "krb5kdc", "kdb5_util", "kadmin.local", "kinit")
	case "ztn":
		programs = append(programs, "sqlite3")
	}
	return programs
}

// xrootdValues fill xrootd.cfg in, for one program of one server.
type xrootdValues struct {
	Program, Role, Dir, Root, Port, Manager  string
	Lookup                                   int  // of the redirector; 0 elsewhere
	Names                                    bool // in redirects instead of addresses
	Cert, Key, CADir                         string
	Copies                                   bool
	Protocol, Security, Authorization, Extra string
	Asker                                    string
	Families                                 string // of addresses, as xrootd's -I has them
}

func (c XRootDConfig) build(ctx context.Context, s *System, program string) {
	v := xrootdValues{Dir: s.Dir, Program: "xrootd", Role: "server", Extra: c.Extra, Asker: asker, Copies: c.Copies, Families: "v4"}
	c.protect(ctx, s, &v)
	programs := c.commands(s, program)
	if c.Users && s.err == nil {
		s.fail(newGridUser(s))
		v.Extra += "\nhttp.gridmap " + gridmap(s) + "\n"
	}
	if c.Macaroons != "" {
		macaroons(s, c.Macaroons, &v)
	}
	if c.Servers > 0 {
		c.cluster(s, v, programs)
		return
	}
	p := s.newPort(true)
	c.point(s, p)
	server := newDataServer(s, "xrootd", p, "root")
	s.Servers, s.Data = []Server{server}, server.Data
	v.Port, v.Root = p.String(), filepath.Dir(server.Data)
	v.Extra = v.Authorization + v.Extra
	if c.IPv6 {
		v.Families, v.Extra = "v6", "xrd.allow host [::1]\nxrd.allow host localhost\nxrd.allow host ip6-localhost\n"+v.Extra
		s.URL = strings.Replace(s.URL, "127.0.0.1", "[::1]", 1)
	}
	s.confine(server.Name, xrootdPart(s, server.Name, v, programs, askXRootD(p.Address())))
}

// macaroons makes a server issue and accept macaroons under rules.
func macaroons(s *System, rules string, v *xrootdValues) {
	secret := make([]byte, 64)
	_, _ = rand.Read(secret) // never fails
	key := s.file("macaroons.key", []byte(base64.StdEncoding.EncodeToString(secret)+"\n"))
	authdb := s.file("macaroons.rules", []byte(rules+"\n"))
	v.Extra += fmt.Sprintf("\nhttp.exthandler xrdmacaroons libXrdMacaroons.so\nmacaroons.secretkey %s\nall.sitename LAB\n"+
		"ofs.authorize 1\nofs.authlib libXrdMacaroons.so\nacc.authdb %s\nhttp.header2cgi Authorization authz\n", key, authdb)
}

// point sets the URLs of the service at p. They contain a name if a certificate is checked or a
// ticket is requested, otherwise an address, which is not looked up.
func (c XRootDConfig) point(s *System, p *port) {
	host := p.Address()
	if c.Auth == "gsi" || c.Auth == "krb5" || c.Auth == "ztn" {
		host = p.local()
	}
	s.URLs["root"] = "root://" + host + "//data"
	s.URLs["http"] = "http://" + host + "/data"
	s.URL = s.URLs["root"]
	if c.TLS {
		s.URLs["roots"] = "roots://" + p.local() + "//data"
		s.URLs["https"] = "https://" + p.local() + "/data"
	}
	if c.Auth == "ztn" {
		s.URL = s.URLs["roots"]
	}
}

// newDataServer makes the folder of a data server at p.
func newDataServer(s *System, name string, p *port, folder string) Server {
	address := p.Address()
	s.newDisk(name, folder)
	return Server{Name: name, Role: DataServer, Address: address, URL: "root://" + address + "//data",
		Data: s.newDir(filepath.Join(folder, "data"))}
}

// xrootdPart adds one program of a server as a part.
func xrootdPart(s *System, server string, v xrootdValues, programs map[string][]string, ask question) *process {
	name := server
	if v.Manager != "" {
		name += "-" + v.Program
	}
	conf := s.config(name+".cfg", xrootdConf, v)
	// Beside the file of its process id it leaves another, else in /tmp.
	pid := filepath.Join(s.Dir, "run", name, "pid")
	p := s.part(name, ask, append(slices.Clone(programs[v.Program]), "-I", v.Families, "-n", server, "-s", pid, "-c", conf)...)
	p.server = server
	return p
}
