package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"weir/lab"
)

// labAuth is the auth block of a scenario on one line: JSON, which is YAML.
func labAuth(s *lab.System) string {
	if len(s.Settings) == 0 {
		return "{}"
	}
	b, _ := json.Marshal(s.Settings) // strings can always be written
	return string(b)
}

// labOn is the on block of a scenario whose workers the system runs.
func labOn(s *lab.System) string {
	var hosts string
	if s.Batch == "ssh" {
		var names []string
		for _, server := range s.Servers {
			names = append(names, server.Name)
		}
		hosts = ", hosts: [" + strings.Join(names, ", ") + "]"
	}
	return "{batch: " + s.Batch + hosts + "}"
}

// labHost is a backend in the hosts block of a scenario.
type labHost struct {
	Name        string   `json:"name"`
	Role        string   `json:"role"`
	Address     []string `json:"address"`
	Interface   string   `json:"interface,omitempty"`
	TransferLog string   `json:"transfer_log"`
	Groups      []int    `json:"groups"`
}

// labHosts are the servers behind a balancer, each as one line of JSON, which is
// YAML.
func labHosts(s *lab.System) []string {
	var all []string
	for _, server := range s.Servers {
		if server.TransferLog == "" {
			continue
		}
		b, _ := json.Marshal(labHost{server.Name, "server", []string{server.DataAddress}, server.Interface, server.TransferLog, s.Pids(server.Name)}) // texts and numbers can always be written
		all = append(all, string(b))
	}
	return all
}

// labBalancer is the balancer block of a scenario on one line.
func labBalancer(s *lab.System) string { return "{haproxy: " + s.StatsSocket + "}" }

// labText tells people what there is.
func labText(out io.Writer, s *lab.System) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, scheme := range slices.Sorted(maps.Keys(s.URLs)) {
		_, _ = fmt.Fprintf(t, "%s\t%s\n", scheme, s.URLs[scheme])
	}
	if s.Data != "" {
		_, _ = fmt.Fprintf(t, "data\t%s\n", s.Data)
	}
	if s.CAFile != "" {
		_, _ = fmt.Fprintf(t, "authority\t%s\n", s.CAFile)
	}
	if len(s.Servers) > 1 || s.Batch != "" {
		for _, server := range s.Servers {
			by := ""
			if server.Interface != "" {
				by = "\tby " + server.Interface
			}
			_, _ = fmt.Fprintf(t, "%s\t%s\tpids %s%s\n", server.Name, server.Address, strings.Trim(fmt.Sprint(s.Pids(server.Name)), "[]"), by)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if s.Note != "" {
		b.WriteString("\n# " + s.Note + "\n")
	}
	if len(s.Env) > 0 {
		b.WriteString("\n# the environment of real clients\n")
		for _, v := range s.Env {
			b.WriteString("export " + v + "\n")
		}
	}
	if s.Name != "postgresql" { // which is not measured
		b.WriteString("\n# of a scenario\n" + labScenario(s))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// labScenario is what a scenario says of the system.
func labScenario(s *lab.System) string {
	if s.Batch != "" {
		return "on: " + labOn(s) + "\n"
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
		b.WriteString("balancer: " + labBalancer(s) + "\nhosts:\n")
		for _, host := range labHosts(s) {
			b.WriteString("- " + host + "\n")
		}
	}
	return b.String()
}

// labState is what --json prints.
type labState struct {
	Name    string            `json:"name"`
	Note    string            `json:"note,omitempty"`
	URL     string            `json:"url"`
	URLs    map[string]string `json:"urls"`
	Dir     string            `json:"dir"`
	Data    string            `json:"data"`
	CAFile  string            `json:"ca_file,omitempty"`
	Pids    []int             `json:"pids"`
	Servers []labServer       `json:"servers"`
	Env     map[string]string `json:"env"`
	Auth    map[string]string `json:"auth"`
	Batch   string            `json:"batch,omitempty"`        // what on.batch of a scenario is to be
	Stats   string            `json:"stats_socket,omitempty"` // of HAProxy
}

type labServer struct {
	Name    string `json:"name"`
	Role    string `json:"role"`
	Address string `json:"address"`
	URL     string `json:"url"`
	Data    string `json:"data,omitempty"`
	Pids    []int  `json:"pids"`

	DataAddress string `json:"data_address,omitempty"`
	Interface   string `json:"interface,omitempty"`
	TransferLog string `json:"transfer_log,omitempty"`
}

// labJSON tells programs what there is.
func labJSON(out io.Writer, s *lab.System) error {
	state := labState{
		Name: s.Name, URL: s.URL, URLs: s.URLs, Dir: s.Dir, Data: s.Data, CAFile: s.CAFile,
		Pids: s.Pids(), Servers: []labServer{}, Env: map[string]string{}, Auth: map[string]string{},
		Note: s.Note, Batch: s.Batch, Stats: s.StatsSocket,
	}
	for _, server := range s.Servers {
		state.Servers = append(state.Servers, labServer{
			server.Name, server.Role, server.Address, server.URL, server.Data, s.Pids(server.Name), server.DataAddress, server.Interface, server.TransferLog,
		})
	}
	for _, v := range s.Env {
		name, value, _ := strings.Cut(v, "=")
		state.Env[name] = value
	}
	maps.Copy(state.Auth, s.Settings)
	return writeJSON(out, state)
}

func labListCommand(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the services that can be started, and what is missing for them",
		Example: "  weir lab list", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return writeJSON(s.out, map[string]any{"services": labListing()})
			}
			t := tabwriter.NewWriter(s.out, 0, 8, 2, ' ', 0)
			for _, l := range labListing() {
				name := l.Name
				switch {
				case l.Servers > 0:
					name = "  --servers N"
				case l.Auth != "none":
					name = "  --auth " + l.Auth
				}
				_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", name, l.What, l.readiness())
			}
			return t.Flush()
		},
	}
	jsonFlag(c, &asJSON, "print the list as JSON")
	return c
}

// labListed is one system that can be started: with one way to prove who clients
// are, or of several servers.
type labListed struct {
	Name    string   `json:"name"`
	What    string   `json:"what"`
	Auth    string   `json:"auth"`
	Servers int      `json:"servers"` // 1: with --servers; 0: without
	Ready   bool     `json:"ready"`
	Missing []string `json:"missing,omitempty"` // a sentence each
	Install string   `json:"install,omitempty"` // the command that installs what is missing
}

func (l labListed) readiness() string {
	switch {
	case l.Ready:
		return "ready"
	case l.Install != "":
		return "missing: " + l.Install
	default:
		return "missing: " + strings.Join(l.Missing, "; ")
	}
}

// labListing looks at all that can be started.
func labListing() []labListed {
	var all []labListed
	add := func(k lab.Kind, what, auth string, servers int) {
		missing := k.Missing(auth, servers)
		l := labListed{Name: k.Name, What: what, Auth: auth, Servers: servers, Ready: len(missing) == 0, Install: lab.Install(missing)}
		for _, m := range missing {
			l.Missing = append(l.Missing, m.Error())
		}
		all = append(all, l)
	}
	for _, k := range lab.Kinds() {
		add(k, k.What, k.Auths[0], 0)
		if k.Several != "" {
			add(k, k.Several, k.Auths[0], 1)
		}
		for _, auth := range k.Auths[1:] {
			add(k, labAuthWhat(auth), auth, 0)
		}
	}
	return all
}

func labAuthWhat(auth string) string {
	return map[string]string{
		"unix": "the user's name, as the client says it",
		"krb5": "Kerberos tickets of a KDC of its own",
		"gsi":  "X.509 proxies of an authority of its own",
		"ztn":  "WLCG tokens of an issuer of its own, over TLS",
	}[auth]
}
