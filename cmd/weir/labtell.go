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

// labText tells people what there is.
func labText(out io.Writer, s *lab.System) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, scheme := range slices.Sorted(maps.Keys(s.URLs)) {
		_, _ = fmt.Fprintf(t, "%s\t%s\n", scheme, s.URLs[scheme])
	}
	_, _ = fmt.Fprintf(t, "data\t%s\n", s.Data)
	if s.CAFile != "" {
		_, _ = fmt.Fprintf(t, "authority\t%s\n", s.CAFile)
	}
	if len(s.Servers) > 1 {
		for _, server := range s.Servers {
			_, _ = fmt.Fprintf(t, "%s\t%s\tpids %s\n", server.Name, server.Address, strings.Trim(fmt.Sprint(s.Pids(server.Name)), "[]"))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(s.Env) > 0 {
		b.WriteString("\n# the environment of real clients\n")
		for _, v := range s.Env {
			b.WriteString("export " + v + "\n")
		}
	}
	b.WriteString("\n# of a scenario\ntarget: " + s.URL + "\n")
	if len(s.Settings) > 0 {
		b.WriteString("auth:\n")
		for _, key := range slices.Sorted(maps.Keys(s.Settings)) {
			b.WriteString("  " + key + ": " + s.Settings[key] + "\n")
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// labState is what --json prints.
type labState struct {
	Name    string            `json:"name"`
	URL     string            `json:"url"`
	URLs    map[string]string `json:"urls"`
	Dir     string            `json:"dir"`
	Data    string            `json:"data"`
	CAFile  string            `json:"ca_file,omitempty"`
	Pids    []int             `json:"pids"`
	Servers []labServer       `json:"servers"`
	Env     map[string]string `json:"env"`
	Auth    map[string]string `json:"auth"`
}

type labServer struct {
	Name    string `json:"name"`
	Role    string `json:"role"`
	Address string `json:"address"`
	URL     string `json:"url"`
	Data    string `json:"data,omitempty"`
	Pids    []int  `json:"pids"`
}

// labJSON tells programs what there is.
func labJSON(out io.Writer, s *lab.System) error {
	state := labState{
		Name: s.Name, URL: s.URL, URLs: s.URLs, Dir: s.Dir, Data: s.Data, CAFile: s.CAFile,
		Pids: s.Pids(), Servers: []labServer{}, Env: map[string]string{}, Auth: map[string]string{},
	}
	for _, server := range s.Servers {
		state.Servers = append(state.Servers, labServer{server.Name, server.Role, server.Address, server.URL, server.Data, s.Pids(server.Name)})
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
				return labListJSON(s.out)
			}
			t := tabwriter.NewWriter(s.out, 0, 8, 2, ' ', 0)
			for _, k := range lab.Kinds() {
				_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", k.Name, k.What, readiness(k, k.Auths[0]))
				for _, auth := range k.Auths[1:] {
					_, _ = fmt.Fprintf(t, "  --auth %s\t%s\t%s\n", auth, labAuthWhat(auth), readiness(k, auth))
				}
			}
			return t.Flush()
		},
	}
	jsonFlag(c, &asJSON, "print the list as JSON")
	return c
}

// labListed is one service that can be started, with one way to prove who clients are.
type labListed struct {
	Name    string `json:"name"`
	What    string `json:"what"`
	Auth    string `json:"auth"`
	Ready   bool   `json:"ready"`
	Install string `json:"install,omitempty"` // the command that installs what is missing
}

// labListJSON tells programs what can be started.
func labListJSON(out io.Writer) error {
	all := []labListed{}
	for _, k := range lab.Kinds() {
		for i, auth := range k.Auths {
			l := labListed{Name: k.Name, What: k.What, Auth: auth, Ready: true}
			if i > 0 {
				l.What = labAuthWhat(auth)
			}
			if missing := k.Missing(auth); len(missing) > 0 {
				l.Ready, l.Install = false, lab.Install(missing)
			}
			all = append(all, l)
		}
	}
	return writeJSON(out, map[string]any{"services": all})
}

func labAuthWhat(auth string) string {
	return map[string]string{
		"unix": "the user's name, as the client says it",
		"krb5": "Kerberos tickets of a KDC of its own",
		"gsi":  "X.509 proxies of an authority of its own",
		"ztn":  "WLCG tokens of an issuer of its own, over TLS",
	}[auth]
}

func readiness(k lab.Kind, auth string) string {
	missing := k.Missing(auth)
	if len(missing) == 0 {
		return "ready"
	}
	return "missing: " + lab.Install(missing)
}
