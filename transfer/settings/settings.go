// Package settings reads the keys of a coordinator's configuration file that are not flags: sites,
// tokens, issuers, notifications and the message broker.
package settings

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os/exec"
	"slices"
	"time"

	"weir/internal/flagfile"
	"weir/internal/say"
	"weir/internal/trust"
	"weir/internal/unit"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/catalog"
	"weir/transfer/coordinator"
	"weir/transfer/messages"
	"weir/transfer/notify"
	"weir/transfer/sites"
)

// Keys are the keys of a coordinator's file that are not flags.
type Keys struct {
	Names     map[string][]string `yaml:"names" doc:"Roles (read, submit, approve, admin) by the name in a client certificate, as --name."`
	VOMSRoles map[string][]string `yaml:"voms_roles" doc:"Roles (read, submit, approve, admin) by VOMS attribute (FQAN), as --voms-role."`
	Shares    map[string]float64  `yaml:"shares" doc:"Weights of activities, as --share."`
	Sites     []siteKeys          `yaml:"sites" doc:"Sites without an agent, added or changed at the start. Sites with an agent add themselves."`
	Tokens    []tokenKeys         `yaml:"tokens" doc:"Tokens of users and agents, each written to a file at the start unless that has a valid one."`
	Issuers   []issuerKeys        `yaml:"issuers" doc:"External issuers of users' tokens (WLCG profile), as --user-issuer. See docs/fts.md."`
	Notify    []notifyKeys        `yaml:"notify" doc:"Notifications about requests that have ended. See docs/notifications.md."`
	Broker    *brokerKeys         `yaml:"broker" doc:"Message broker that gets FTS3's messages about the files of jobs, as --broker. See docs/fts.md."`
}

type siteKeys struct {
	Name          string   `yaml:"name" doc:"Name of the site."`
	URL           string   `yaml:"url" doc:"URL of the folder with the files."`
	TokenFile     string   `yaml:"token_file" doc:"File with the bearer token for the site."`
	TokenVariable string   `yaml:"token_variable" doc:"Environment variable with the bearer token for the site."`
	Pin           string   `yaml:"pin" doc:"SHA256 of the site's certificate, if that is self-signed."`
	Max           int      `yaml:"max" doc:"Most copies at once from and to the site; 0: what the links carry."`
	Servers       []string `yaml:"servers" doc:"Data servers that get the token as well: HOST, HOST:PORT or *.DOMAIN."`
	Lend          bool     `yaml:"lend_token" doc:"Give the token itself to agents and sites that copy from or to this one."`
}

type tokenKeys struct {
	Site  string        `yaml:"site" doc:"Site whose agent the token is for."`
	Name  string        `yaml:"name" doc:"User whom the token is for."`
	Roles []string      `yaml:"roles" enum:"read,submit,approve,admin" doc:"Roles of the user: read, submit, approve, admin."`
	Life  unit.Duration `yaml:"life" doc:"Lifetime; left out: 365d."`
	File  string        `yaml:"file" doc:"File that the token is written to, which only the coordinator's user can read."`
}

type issuerKeys struct {
	URL            string              `yaml:"url" doc:"URL of the issuer, as its tokens have it in iss."`
	Audience       []string            `yaml:"audience" doc:"Audiences of its tokens for this coordinator, besides the URL of the coordinator and https://wlcg.cern.ch/jwt/v1/any."`
	VO             string              `yaml:"vo" doc:"Virtual organization of its users; left out: their groups, or the host of the issuer."`
	Roles          map[string][]string `yaml:"roles" doc:"Roles (read, submit, approve, admin) by scope, or by group, which begins with /; left out: fts:submit-transfer gives submit."`
	ClientID       string              `yaml:"client_id" doc:"Client with which tokens of jobs are renewed at the issuer; left out: they are used as they are."`
	SecretFile     string              `yaml:"client_secret_file" doc:"File with the secret of the client."`
	SecretVariable string              `yaml:"client_secret_variable" doc:"Environment variable with the secret of the client."`
}

type notifyKeys struct {
	Name           string        `yaml:"name" doc:"Name of the target, unique."`
	On             []string      `yaml:"on" enum:"completed,partial,failed,cancelled,rejected,expired" doc:"Ends that are notified; left out: partial, failed, cancelled, rejected and expired."`
	Webhook        string        `yaml:"webhook" doc:"URL that JSON is posted to."`
	SecretFile     string        `yaml:"secret_file" doc:"File with the secret that signs webhooks."`
	SecretVariable string        `yaml:"secret_variable" doc:"Environment variable with the secret that signs webhooks."`
	CAFile         string        `yaml:"ca_file" doc:"PEM file of authorities of the webhook's certificate, besides those of the system."`
	Private        bool          `yaml:"private" doc:"The webhook may be at an address of a private network or of this machine."`
	Command        []string      `yaml:"command" doc:"Program and arguments, which gets JSON on its standard input."`
	Mail           []string      `yaml:"mail" doc:"Addresses that get a mail."`
	From           string        `yaml:"from" doc:"Sender of the mail; left out: that of sendmail."`
	Sendmail       []string      `yaml:"sendmail" doc:"Program and arguments that take the mail; left out: /usr/sbin/sendmail -t -i."`
	Timeout        unit.Duration `yaml:"timeout" doc:"Time that one attempt may take, up to 10m; left out: 30s."`
}

type brokerKeys struct {
	URLs             []string      `yaml:"urls" doc:"stomp://HOST:PORT, or with TLS stomp+ssl://HOST:PORT; the first that answers is used."`
	User             string        `yaml:"user" doc:"User who logs in; left out: no login."`
	PasswordFile     string        `yaml:"password_file" doc:"File with the password of the user."`
	PasswordVariable string        `yaml:"password_variable" doc:"Environment variable with the password of the user."`
	Host             string        `yaml:"virtual_host" doc:"Virtual host; left out: the host of the URL."`
	CAFile           string        `yaml:"ca_file" doc:"PEM file of authorities of the broker's certificate, besides those of the system."`
	Cert             string        `yaml:"cert" doc:"PEM file with a client certificate."`
	Key              string        `yaml:"key" doc:"PEM file with the key of cert."`
	VOs              []string      `yaml:"vos" doc:"Virtual organizations whose messages are sent; left out: all."`
	Users            bool          `yaml:"users" doc:"Messages name users (user_dn)."`
	Start            string        `yaml:"start" doc:"Destination of messages about transfers that begin, or none; left out: /topic/transfer.fts_monitoring_start."`
	Complete         string        `yaml:"complete" doc:"Destination of messages about transfers that end, or none; left out: /topic/transfer.fts_monitoring_complete."`
	State            string        `yaml:"state" doc:"Destination of messages about states of files, or none; left out: /topic/transfer.fts_monitoring_state."`
	Life             unit.Duration `yaml:"life" doc:"How long the broker keeps a message that no client takes; left out: 1d."`
	Keep             unit.Duration `yaml:"keep" doc:"How long messages wait for the broker before they are dropped; left out: 3d."`
	Most             int64         `yaml:"most" doc:"Changes of files that wait for the broker at most; left out: 1000000."`
}

// Fill completes the configuration of a coordinator with the keys of the file. Values from flags
// stay.
func (k *Keys) Fill(conf *coordinator.Config, f *flagfile.File) {
	if !f.Read() {
		return
	}
	rolesOf(f, "names", k.Names, conf.Names)
	rolesOf(f, "voms_roles", k.VOMSRoles, conf.VOMSRoles)
	for name, weight := range k.Shares {
		if !(weight > 0 && weight <= 1e6) {
			f.Wrong("shares."+name, fmt.Errorf("shares.%s: use a weight above 0, up to 1000000", say.Plain(name)))
		}
		if conf.Shares[name] == 0 {
			conf.Shares[name] = weight
		}
	}
	for i := range k.Sites {
		conf.Sites = append(conf.Sites, k.Sites[i].site(f, fmt.Sprintf("sites.%d", i)))
	}
	for i := range k.Tokens {
		conf.Tokens = append(conf.Tokens, k.Tokens[i].token(f, fmt.Sprintf("tokens.%d", i)))
	}
	for i := range k.Issuers {
		conf.Issuers = append(conf.Issuers, k.Issuers[i].issuer(f, fmt.Sprintf("issuers.%d", i)))
	}
	if i := twice(k.Issuers, func(i issuerKeys) string { return i.URL }); i >= 0 {
		f.Wrong(fmt.Sprintf("issuers.%d.url", i), errors.New("issuers: another issuer has this URL"))
	}
	for i := range k.Notify {
		conf.Notify = append(conf.Notify, k.Notify[i].target(f, fmt.Sprintf("notify.%d", i)))
	}
	if i := twice(k.Notify, func(n notifyKeys) string { return n.Name }); i >= 0 {
		f.Wrong(fmt.Sprintf("notify.%d.name", i), errors.New("notify: another target has this name"))
	}
	if k.Broker != nil {
		conf.Broker = k.Broker.broker(f, conf.Broker)
	}
	if i := twice(k.Sites, func(s siteKeys) string { return s.Name }); i >= 0 {
		f.Wrong(fmt.Sprintf("sites.%d.name", i), errors.New("sites: another site has this name"))
	}
}

// rolesOf adds the roles of a key of the file, except roles that flags have set.
func rolesOf(f *flagfile.File, key string, all, to map[string][]string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if to[name] != nil {
			continue
		}
		for i, role := range all[name] {
			role = transfer.RoleOf(role)
			if access.CheckRole(role) != nil {
				f.Wrong(fmt.Sprintf("%s.%s.%d", key, name, i),
					fmt.Errorf("%s: unknown role %q; use read, submit, approve or admin", key, say.Plain(transfer.RoleNames(role))))
			}
			to[name] = append(to[name], role)
		}
	}
}

// twice returns the index of the first element whose name an earlier element has, or -1 if all
// names differ.
func twice[T any](all []T, name func(T) string) int {
	seen := map[string]bool{}
	for i, one := range all {
		if seen[name(one)] {
			return i
		}
		seen[name(one)] = true
	}
	return -1
}

func (k *siteKeys) site(f *flagfile.File, at string) transfer.NewSite {
	s := transfer.NewSite{Name: k.Name, URL: k.URL, Pin: k.Pin, Max: k.Max, Servers: k.Servers, Lend: k.Lend}
	s.Token = f.Secret(at+".token", k.TokenFile, k.TokenVariable)
	u, err := url.Parse(k.URL)
	withUser := err == nil && u.User != nil
	noURL := !withUser && (err != nil || u.Host == "" || sites.CheckURL(k.URL) != nil)
	wrongName := catalog.CheckSite(k.Name)
	if k.Name == "" {
		f.Wrong(at+".name", fmt.Errorf("%s has no name", at))
	} else if wrongName != nil {
		f.Wrong(at, fmt.Errorf("%s: %w", at, wrongName), "name")
	}
	if withUser {
		f.Wrong(at+".url", fmt.Errorf("%s.url: leave user and password out; name a token with token_file", at))
	} else if noURL {
		f.Wrong(at+".url", fmt.Errorf("%s.url: write it as https://HOST:PORT/FOLDER or roots://HOST:PORT/FOLDER", at))
	}
	if err := sites.Check(&s); err != nil && wrongName == nil && !withUser && !noURL {
		f.Wrong(at, fmt.Errorf("%s: %w", at, err))
	}
	return s
}

func (k *issuerKeys) issuer(f *flagfile.File, at string) access.Issuer {
	i := access.Issuer{URL: k.URL, Audience: k.Audience, VO: k.VO, ClientID: k.ClientID}
	i.ClientSecret = f.Secret(at+".client_secret", k.SecretFile, k.SecretVariable)
	for from, roles := range k.Roles {
		if i.Roles == nil {
			i.Roles = map[string][]string{}
		}
		for _, role := range roles {
			i.Roles[from] = append(i.Roles[from], transfer.RoleOf(role))
		}
	}
	if err := i.Check(); err != nil {
		f.Wrong(at, fmt.Errorf("%s: %w", at, err))
	}
	return i
}

func (k *tokenKeys) token(f *flagfile.File, at string) access.TokenFile {
	if k.Life == 0 {
		k.Life = unit.Duration(365 * 24 * time.Hour)
	}
	t, err := NewToken(k.Site, k.Name, k.Roles)
	t.Life = time.Duration(k.Life)
	file := access.TokenFile{Token: t, File: f.Resolve(k.File)}
	switch {
	case k.Site != "" && (k.Name != "" || len(k.Roles) > 0):
		err = errors.New("site is for an agent, name and roles for a user; make two tokens")
	case err != nil:
		err = errors.New("give a site, or a name and roles")
	case k.File == "":
		err = errors.New("name the file that it is written to with file")
	default:
		err = file.Check()
	}
	if err != nil {
		f.Wrong(at, fmt.Errorf("%s: %w", at, err))
	}
	return file
}

func (k *notifyKeys) target(f *flagfile.File, at string) notify.Target {
	t := notify.Target{
		Name: k.Name, Webhook: k.Webhook, Private: k.Private, CAFile: f.Resolve(k.CAFile), Command: k.Command,
		Mail: k.Mail, From: k.From, Sendmail: k.Sendmail, Timeout: time.Duration(k.Timeout),
	}
	for _, status := range k.On {
		t.On = append(t.On, transfer.Status(status))
	}
	t.Secret = f.Secret(at+".secret", k.SecretFile, k.SecretVariable)
	for _, m := range t.Mistakes() {
		f.Wrong(at, fmt.Errorf("%s: %w", at, m.Err), m.Keys...)
	}
	if t.CAFile != "" {
		if _, err := trust.WithSystem(t.CAFile); err != nil {
			f.Wrong(at+".ca_file", fmt.Errorf("%s.ca_file: %w", at, err))
		}
	}
	program(f, at+".command", t.Command)
	program(f, at+".sendmail", t.Sendmail)
	return t
}

// program notes a mistake if the program of a command cannot be found.
func program(f *flagfile.File, at string, command []string) {
	if len(command) == 0 || command[0] == "" {
		return
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		f.Wrong(at, fmt.Errorf("%s: %w", at, err))
	}
}

// broker returns the broker of the file; the URLs of flags stay.
func (k *brokerKeys) broker(f *flagfile.File, flags *messages.Broker) *messages.Broker {
	b := &messages.Broker{
		URLs: k.URLs, User: k.User, Host: k.Host, CA: f.Resolve(k.CAFile), Cert: f.Resolve(k.Cert), Key: f.Resolve(k.Key), VOs: k.VOs,
		Users: k.Users, Start: k.Start, Complete: k.Complete, State: k.State, Life: time.Duration(k.Life), Keep: time.Duration(k.Keep),
		Most: k.Most,
	}
	if flags != nil {
		b.URLs = flags.URLs
	}
	b.Password = f.Secret("broker.password", k.PasswordFile, k.PasswordVariable)
	if err := b.Check(); err != nil {
		f.Wrong("broker", fmt.Errorf("broker: %w", err))
	} else if err := b.CheckFiles(); err != nil {
		f.Wrong("broker", fmt.Errorf("broker: %w", err), "ca_file", "cert", "key")
	}
	return b
}

// NewToken returns a token for the agent of a site, or for a user with roles: read, submit, approve, admin. Its lifetime is not set.
func NewToken(site, name string, roles []string) (t transfer.NewToken, err error) {
	switch {
	case site != "" && (name != "" || len(roles) > 0):
		return t, errors.New("--site is for an agent, --name and --role for a user: make two tokens")
	case site != "":
		t.Subject, t.Roles = "agent of "+site, []string{access.AgentOf + site}
		return t, nil
	case name == "" || len(roles) == 0:
		return t, errors.New("name a site (--site B), or a user and roles (--name alice --role submit)")
	}
	t.Subject = name
	for _, r := range roles {
		t.Roles = append(t.Roles, transfer.RoleOf(r))
	}
	return t, nil
}
