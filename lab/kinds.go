package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"weir/internal/say"
)

// A Kind is a system that this package can start.
type Kind struct {
	Name    string
	What    string   // one line
	Auths   []string // methods of authentication
	Several string   // one line on the system with several servers; "" if there is always one
	Slots   bool     // runs jobs; the number of jobs at once can be set
	Version bool     // exists in more than one version
	TLS     bool     // supports TLS
	Disk    bool     // supports limited disks

	config func(c Config, o Options) starter
}

// A starter is the configuration of a system.
type starter interface {
	Needs() []string // programs
	Start(ctx context.Context) (*System, error)
}

// A typed is the starter of a system that has a type of its own.
type typed[S interface{ system() *System }] struct {
	config interface {
		Needs() []string
		Start(ctx context.Context) (S, error)
	}
}

func (c typed[S]) Needs() []string { return c.config.Needs() }

func (c typed[S]) Start(ctx context.Context) (*System, error) {
	s, err := c.config.Start(ctx)
	if err != nil {
		return nil, err
	}
	return s.system(), nil
}

// Kinds returns all systems that can be started.
func Kinds() []Kind {
	none := []string{"none"}
	return []Kind{{
		Name: "artemis", What: "ActiveMQ Artemis as a message broker for STOMP", Auths: none,
		config: func(c Config, _ Options) starter { return typed[*Broker]{ArtemisConfig{Config: c}} },
	}, {
		Name: "gridftp", What: "GridFTP server that admits every client, or those with a grid proxy", Auths: []string{"none", "gsi"},
		Several: "behind HAProxy, each with its own data address",
		config:  func(c Config, o Options) starter { return GridFTPConfig{Config: c, Servers: o.Servers, Auth: o.Auth} },
	}, {
		Name: "htcondor", What: "personal HTCondor pool with hundreds of slots", Auths: none, Slots: true,
		config: func(c Config, o Options) starter { return HTCondorConfig{Config: c, Slots: o.Slots} },
	}, {
		Name: "keycloak", What: "Keycloak as an issuer of tokens, with a realm for weir", Auths: none,
		config: func(c Config, _ Options) starter { return typed[*Keycloak]{KeycloakConfig{Config: c}} },
	}, {
		Name: "kubernetes", What: "Kubernetes with one node, this machine, for root", Auths: none, Slots: true,
		config: func(c Config, o Options) starter { return KubernetesConfig{Config: c, Pods: o.Slots} },
	}, {
		Name: "nginx", What: "nginx as an HTTP and WebDAV server", Auths: none, TLS: true, Disk: true,
		config: func(c Config, _ Options) starter { return NginxConfig{Config: c} },
	}, {
		Name: "postgresql", What: "PostgreSQL server with an empty database", Auths: none,
		config: func(c Config, _ Options) starter { return PostgreSQLConfig{Config: c} },
	}, {
		Name: "rabbitmq", What: "RabbitMQ as a message broker for STOMP", Auths: none, TLS: true,
		config: func(c Config, _ Options) starter { return typed[*Broker]{RabbitMQConfig{Config: c}} },
	}, {
		Name: "rucio", What: "Rucio server with its daemons, on SQLite", Auths: none,
		config: func(c Config, _ Options) starter { return typed[*Rucio]{RucioConfig{Config: c}} },
	}, {
		Name: "slurm", What: "Slurm on one machine with hundreds of processors", Auths: none, Slots: true,
		config: func(c Config, o Options) starter { return SlurmConfig{Config: c, CPUs: o.Slots} },
	}, {
		Name: "ssh", What: "machine to log in to", Auths: none, Several: "node1, node2... with a home each", Disk: true,
		config: func(c Config, o Options) starter { return SSHConfig{Config: c, Nodes: o.Servers} },
	}, {
		Name: "xrootd", What: "XRootD server, or a redirector with data servers", Auths: XRootDAuths(), Several: "behind a redirector",
		TLS: true, Version: true, Disk: true,
		config: func(c Config, o Options) starter {
			return XRootDConfig{Config: c, Servers: o.Servers, Lookup: int(o.Lookup / time.Second), Auth: o.Auth, Version: o.Version, Set: o.Set,
				Copies: o.Copies, Extra: o.thirdParty()}
		},
	}}
}

// Names returns the names of all kinds.
func Names() (names []string) {
	for _, k := range Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// KindOf returns the kind of a name; if the name is unknown, ok is false, and the Kind supports
// nothing.
func KindOf(name string) (_ Kind, ok bool) {
	all := Kinds()
	i := slices.IndexFunc(all, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return all[i], true
}

// Start starts a system of kind k. The caller calls Stop.
func (k Kind) Start(ctx context.Context, c Config, o Options) (*System, error) {
	return k.config(c, o).Start(ctx)
}

// Missing returns the programs that this machine lacks to start k with o.
func (k Kind) Missing(o Options) (found []*MissingError) {
	for _, p := range k.config(Config{}, o).Needs() {
		var m *MissingError
		if _, err := Find(p); errors.As(err, &m) {
			found = append(found, m)
		}
	}
	return found
}

// Check returns an error if k cannot be started with o and d: given reports whether a flag of weir lab up was given.
func (k Kind) Check(o Options, d Disk, given func(flag string) bool) error {
	for _, flag := range []struct {
		name string
		has  func(Kind) bool
	}{
		{"servers", func(k Kind) bool { return k.Several != "" }},
		{"slots", func(k Kind) bool { return k.Slots }},
		{"lookup", func(k Kind) bool { return k.Name == "xrootd" }},
		{"auth", func(k Kind) bool { return len(k.Auths) > 1 }},
		{"tls", func(k Kind) bool { return k.TLS }},
		{"disk-limit", func(k Kind) bool { return k.Disk }},
		{"disk-slow", func(k Kind) bool { return k.Disk && k.Several != "" }},
		{"disk-size", func(k Kind) bool { return k.Disk }},
		{"memory-limit", func(k Kind) bool { return k.Disk }},
		{"version", func(k Kind) bool { return k.Version }},
		{"set", func(k Kind) bool { return k.Name == "xrootd" }},
		{"copies", func(k Kind) bool { return k.Name == "xrootd" }},
	} {
		if !given(flag.name) || flag.has(k) {
			continue
		}
		var names []string
		for _, other := range Kinds() {
			if flag.has(other) {
				names = append(names, other.Name)
			}
		}
		return fmt.Errorf("--%s is for %s, not for %s", flag.name, say.List(names), k.Name)
	}
	switch {
	case given("lookup") && o.Servers == 0:
		return errors.New("--lookup is for a redirector: add --servers 3")
	case o.Lookup < time.Second || o.Lookup%time.Second != 0:
		return fmt.Errorf("--lookup %v: use whole seconds, at least 1s", o.Lookup)
	case o.Servers < 0 || o.Servers > MaxServers:
		return fmt.Errorf("--servers %d: use 0 (a single server) to %d", o.Servers, MaxServers)
	case o.Slots < 0 || o.Slots > MaxSlots:
		return fmt.Errorf("--slots %d: use 1 to %d", o.Slots, MaxSlots)
	case !slices.Contains(k.Auths, o.Auth):
		return fmt.Errorf("--auth %s: use one of %s", o.Auth, strings.Join(k.Auths, ", "))
	}
	if err := o.checkSet(); err != nil {
		return fmt.Errorf("--set: %w", err)
	}
	switch {
	case d.Rate == 0 && (given("disk-slow") || given("disk-size") || given("memory-limit")):
		return errors.New("--disk-slow, --disk-size and --memory-limit need --disk-limit: add it, as in --disk-limit 40MB/s")
	case d.Slow > 0 && o.Servers < 2:
		return errors.New("--disk-slow needs --servers 2 or more: the last one has the slow disk")
	}
	return d.Check()
}

// checkSet returns an error if the settings are not such that an XRootD with o can have.
func (o Options) checkSet() error {
	c := XRootDConfig{Servers: o.Servers, Auth: cmp.Or(o.Auth, "none"), Set: o.Set}
	_, err := c.directives()
	return err
}

// thirdParty returns the configuration with which servers of xrootd copy from each other by root://.
// Keys live longer than by default (7 s), in which a busy machine may not start the xrdcp of a copy.
func (o Options) thirdParty() string {
	if !o.Copies {
		return ""
	}
	return "ofs.tpc ttl 60 120 pgm /usr/bin/xrdcp --server\n"
}

// Options configure how a Kind is started.
type Options struct {
	Servers int           // data servers or machines; 0: one alone
	Slots   int           // jobs that run at once; 0: the kind's own number
	Lookup  time.Duration // for which a redirector lets clients wait for each new file; whole seconds
	Auth    string        // one of the kind's Auths
	Version string        // of the server; "": this system's
	Copies  bool          // servers of xrootd copy from each other, by HTTP and by root://
	Set     []string      // settings of each server, as XRootDConfig.Set has them
}

// Installed returns an error with the command that installs the missing programs if k cannot be
// started with o here.
func (k Kind) Installed(o Options) error {
	missing := k.Missing(o)
	var err error
	for _, m := range missing {
		err = errors.Join(err, m)
	}
	if how := Install(missing); how != "" {
		err = fmt.Errorf("%w\nTo install what is missing: %s", err, how)
	}
	return err
}

// An Offer is a system that can be started, with one way of authentication, alone or with several servers.
type Offer struct {
	Name    string   `json:"name"`
	What    string   `json:"what"`
	Auth    string   `json:"auth"`
	Servers int      `json:"servers"` // 1: with --servers; 0: without
	Ready   bool     `json:"ready"`
	Missing []string `json:"missing,omitempty"` // a sentence each
	Install string   `json:"install,omitempty"` // the command that installs the missing programs
}

// Offers returns all systems that can be started, and the missing programs of the others.
func Offers() (all []Offer) {
	add := func(k Kind, what, auth string, servers int) {
		missing := k.Missing(Options{Auth: auth, Servers: servers})
		o := Offer{Name: k.Name, What: what, Auth: auth, Servers: servers, Ready: len(missing) == 0, Install: Install(missing)}
		for _, m := range missing {
			o.Missing = append(o.Missing, m.Error())
		}
		all = append(all, o)
	}
	about := map[string]string{
		"unix": "the user's name, as the client says it",
		"krb5": "Kerberos tickets of a KDC of its own",
		"gsi":  "X.509 proxies of an authority of its own",
		"ztn":  "WLCG tokens of an issuer of its own, over TLS",
	}
	for _, k := range Kinds() {
		add(k, k.What, k.Auths[0], 0)
		if k.Several != "" {
			add(k, k.Several, k.Auths[0], 1)
		}
		for _, auth := range k.Auths[1:] {
			add(k, about[auth], auth, 0)
		}
	}
	return all
}

// readiness returns whether the system can be started, or the missing programs.
func (o Offer) readiness() string {
	if o.Ready {
		return "ready"
	}
	return "missing: " + cmp.Or(o.Install, strings.Join(o.Missing, "; "))
}

// AuthBlock returns the auth block of a scenario on one line: JSON, which is YAML.
func (s *System) AuthBlock() string {
	if len(s.Settings) == 0 {
		return "{}"
	}
	return oneLine(s.Settings)
}

// OnBlock returns the on block of a scenario whose workers the system runs.
func (s *System) OnBlock() string {
	switch s.Batch {
	case "ssh":
	case "kubernetes":
		return "{batch: kubernetes, kubernetes: {image: '" + KubernetesImage + "'}, submit: ['hostNetwork: true']}"
	default:
		return "{batch: " + s.Batch + "}"
	}
	return "{batch: ssh, hosts: [" + strings.Join(s.names(), ", ") + "]}"
}

// BalancerBlock returns the balancer block of a scenario.
func (s *System) BalancerBlock() string { return "{haproxy: " + s.StatsSocket + "}" }

// HostsBlock returns the entries of the hosts block of a scenario: the servers behind a balancer, a line each.
func (s *System) HostsBlock() (all []string) {
	for _, server := range s.Servers {
		if server.TransferLog == "" {
			continue
		}
		all = append(all, oneLine(struct {
			Name        string   `json:"name"`
			Role        string   `json:"role"`
			Address     []string `json:"address"`
			Interface   string   `json:"interface,omitempty"`
			TransferLog string   `json:"transfer_log"`
			Groups      []int    `json:"groups"`
		}{server.Name, "server", []string{server.DataAddress}, server.Interface, server.TransferLog, s.Pids(server.Name)}))
	}
	return all
}

// TargetList returns the data servers of an XRootD cluster as the target of a scenario whose clients use them in turn
// and without the redirector, under the names that logins need; "" for other systems.
func (s *System) TargetList() string {
	at, err := url.Parse(s.URL)
	if err != nil || len(s.Servers) == 0 || s.Servers[0].Role != Redirector {
		return ""
	}
	var all []string
	for _, server := range s.Servers[1:] {
		_, port, _ := strings.Cut(server.Address, ":")
		all = append(all, at.Scheme+"://"+at.Hostname()+":"+port+"//data")
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// oneLine returns v, which has strings and numbers only, as JSON.
func oneLine(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// Scenario returns the part of a scenario that describes the system.
func (s *System) Scenario() string {
	if s.Batch != "" {
		return "on: " + s.OnBlock() + "\n"
	}
	var b strings.Builder
	b.WriteString("target: " + s.URL + "\n")
	if len(s.Settings) > 0 {
		b.WriteString("auth:\n")
		for _, key := range slices.Sorted(maps.Keys(s.Settings)) {
			b.WriteString("  " + key + ": " + s.Settings[key] + "\n")
		}
	}
	if s.StatsSocket != "" {
		b.WriteString("balancer: " + s.BalancerBlock() + "\nhosts:\n")
		for _, host := range s.HostsBlock() {
			b.WriteString("- " + host + "\n")
		}
	}
	return b.String()
}

// Variables returns the environment of real clients, and WEIR_LAB_... variables that describe the
// system. A variable that does not apply is left out, so that one system inside another does not
// hide the variables of the outer system.
func (s *System) Variables() []string {
	env := slices.Clone(s.Env)
	if s.URL != "" {
		env = append(env, "WEIR_LAB_URL="+s.URL, "WEIR_LAB_DATA="+s.Data, "WEIR_LAB_AUTH="+s.AuthBlock())
	}
	if list := s.TargetList(); list != "" {
		env = append(env, "WEIR_LAB_SERVERS="+list)
	}
	if s.Batch != "" {
		env = append(env, "WEIR_LAB_ON="+s.OnBlock())
	}
	if s.StatsSocket != "" {
		env = append(env, "WEIR_LAB_BALANCER="+s.BalancerBlock(), "WEIR_LAB_HOSTS=["+strings.Join(s.HostsBlock(), ", ")+"]")
	}
	if s.CAFile != "" {
		env = append(env, "WEIR_LAB_CA="+s.CAFile)
	}
	for _, server := range s.Servers {
		pids := fmt.Sprint(s.Pids(server.Name))
		env = append(env, "WEIR_LAB_PIDS_"+strings.ToUpper(strings.ReplaceAll(server.Name, "-", "_"))+"="+strings.Trim(pids, "[]"))
	}
	for scheme, url := range s.URLs {
		env = append(env, "WEIR_LAB_URL_"+strings.ToUpper(scheme)+"="+url)
	}
	return env
}

// A State describes a running system for programs.
type State struct {
	Name    string            `json:"name"`
	Note    string            `json:"note,omitempty"`
	URL     string            `json:"url"`
	URLs    map[string]string `json:"urls"`
	Dir     string            `json:"dir"`
	Data    string            `json:"data"`
	CAFile  string            `json:"ca_file,omitempty"`
	Pids    []int             `json:"pids"`
	Servers []ServerState     `json:"servers"`
	Env     map[string]string `json:"env"`
	Auth    map[string]string `json:"auth"`
	Batch   string            `json:"batch,omitempty"`        // for on.batch of a scenario
	Slots   int               `json:"slots,omitempty"`        // jobs that run at once
	Stats   string            `json:"stats_socket,omitempty"` // of HAProxy
}

// A ServerState describes one server of a State.
type ServerState struct {
	Server
	Pids []int `json:"pids"`
}

// State returns the state of the system.
func (s *System) State() State {
	state := State{
		Name: s.Name, URL: s.URL, URLs: s.URLs, Dir: s.Dir, Data: s.Data, CAFile: s.CAFile,
		Pids: s.Pids(), Servers: []ServerState{}, Env: map[string]string{}, Auth: map[string]string{},
		Note: s.Note, Batch: s.Batch, Slots: s.Slots, Stats: s.StatsSocket,
	}
	for _, v := range s.Servers {
		state.Servers = append(state.Servers, ServerState{v, s.Pids(v.Name)})
	}
	for _, v := range s.Env {
		name, value, _ := strings.Cut(v, "=")
		state.Env[name] = value
	}
	maps.Copy(state.Auth, s.Settings)
	return state
}
