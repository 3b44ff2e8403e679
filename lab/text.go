package lab

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/say"
	"weir/internal/screen"
)

// Command returns a command in the environment of the system's clients, whose program is found in their PATH.
func (s *System) Command(ctx context.Context, argv []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, programOf(s, argv[0]), argv[1:]...)
	cmd.Env = append(os.Environ(), s.Variables()...)
	return cmd
}

// programOf finds a program in the PATH of the system's clients.
func programOf(s *System, name string) string {
	for _, v := range s.Env {
		path, ok := strings.CutPrefix(v, "PATH=")
		if !ok || strings.Contains(name, "/") {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil && dir != "" {
				return found
			}
		}
	}
	return name
}

// WriteText writes the information that a user needs to use the system.
func (s *System) WriteText(out io.Writer) error {
	var b strings.Builder
	t := say.NewTable(&b)
	for _, scheme := range slices.Sorted(maps.Keys(s.URLs)) {
		t.Row(scheme, s.URLs[scheme])
	}
	if s.Data != "" {
		t.Row("data", s.Data)
	}
	if s.Slots > 0 {
		t.Row("slots", s.Slots)
	}
	if s.CAFile != "" {
		t.Row("authority", s.CAFile)
	}
	for _, server := range s.Servers {
		if len(s.Servers) == 1 && s.Batch == "" {
			break
		}
		cells := []any{server.Name, server.Address, "pids " + strings.Trim(fmt.Sprint(s.Pids(server.Name)), "[]")}
		if server.Interface != "" {
			cells = append(cells, "by "+server.Interface)
		}
		t.Row(cells...)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if s.Note != "" {
		b.WriteString("\n# " + s.Note + "\n")
	}
	if len(s.Env) > 0 {
		b.WriteString("\n# environment of real clients\nexport " + strings.Join(s.Env, "\nexport ") + "\n")
	}
	if s.Name != "postgresql" { // which is not measured
		b.WriteString("\n# for a scenario\n" + s.Scenario())
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// WriteOffers writes the systems that can be started, and the missing programs of the others.
func WriteOffers(out io.Writer) error {
	t := say.NewTable(out)
	width := screen.Width(out)
	t.Fit(width)
	for _, o := range Offers() {
		name := o.Name
		switch {
		case o.Servers > 0:
			name = "  --servers N"
		case o.Auth != "none":
			name = "  --auth " + o.Auth
		}
		if width > 0 { // two columns fit on a terminal
			t.Row(name, o.What+"; "+o.readiness())
			continue
		}
		t.Row(name, o.What, o.readiness())
	}
	return t.Flush()
}
