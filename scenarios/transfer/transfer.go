// Package transfer embeds the scenarios of this folder, so that the program has them wherever it is
// installed.
package transfer

import (
	"embed"
	"slices"
)

//go:embed *.yaml
var files embed.FS

// Names returns the names of all scenarios, in the order in which they are played.
func Names() []string {
	return []string{"growing", "dataset", "one-copy", "missing", "sources", "site-off", "throughput", "adding", "shared", "push-pull", "links",
		"routing", "routing-random"}
}

// Read returns a scenario's YAML, or false if no scenario has that name.
func Read(name string) ([]byte, bool) {
	if !slices.Contains(Names(), name) {
		return nil, false
	}
	text, err := files.ReadFile(name + ".yaml")
	return text, err == nil
}
