package command

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"weir/storage"
)

// A Preset is a known program, as it is run for each kind of operation.
type Preset struct {
	Name     string
	Commands map[storage.Kind][]string // program and arguments, with placeholders
	Programs []string                  // the programs that have to be installed
}

// Presets returns the known programs by name.
func Presets() []Preset {
	var presets []Preset
	tools := known()
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		p := Preset{Name: name, Commands: tools[name].argv}
		for _, argv := range p.Commands {
			p.Programs = append(p.Programs, argv[0])
		}
		slices.Sort(p.Programs)
		p.Programs = slices.Compact(p.Programs)
		presets = append(presets, p)
	}
	return presets
}

func presetNames() string {
	return strings.Join(slices.Sorted(maps.Keys(known())), ", ")
}

// A tool is a program that the driver can run, or a user's command.
type tool struct {
	argv map[storage.Kind][]string
	part []string // reads one range; nil: cannot

	raw  bool   // URLs of XRootD's schemes are not escaped
	sink string // destination of discarded payload: "" a scratch file after all, "link" a link to /dev/null, else that path
	// The program is one process that reads {source} with read and writes {dest} with write, so the
	// kernel's counters show its progress.
	counted bool
	env     []string // set unless the environment has them

	said  func(stdout []byte) (int64, bool)                    // bytes that a read has transferred, or is going to transfer
	stat  func(stdout []byte) (int64, error)                   // size of a file
	list  func(stdout []byte, at, url string) (entries, error) // parses the content of a folder
	sum   func(stdout []byte) (hex string, ok bool)            // a checksum
	fail  func(status int, text string) error                  // classifies a failure, nil if unknown
	auth  func(s *service, c storage.Credentials) error        // checks, beyond the environment, whether credentials can be passed on
	lines map[storage.Kind]line                                // argv and part understood
}

// partLine is the index, among the lines of the kinds, of the line that reads a part.
const partLine = storage.Kinds + 1

// known returns the presets.
//
// They differ from each program's defaults: XRootD's clients give up a connection after one attempt
// and 10 s instead of trying for minutes, so that a refused connection is seen as one
// (XRD_CONNECTIONRETRY and XRD_CONNECTIONWINDOW, unless the environment sets them); gfal-copy gets
// its interpreter, which it otherwise finds by starting two more; curl ignores ~/.curlrc.
func known() map[string]tool {
	xrd := []string{"XRD_CONNECTIONRETRY=1", "XRD_CONNECTIONWINDOW=10"}
	gfal := slices.Clone(xrd)
	if _, err := os.Stat("/usr/bin/python3"); err == nil {
		gfal = append(gfal, "GFAL_PYTHONBIN=/usr/bin/python3")
	}
	return map[string]tool{
		"gfal-copy": {
			argv: map[storage.Kind][]string{
				// gfal2 writes into a destination that is a device, also through a link, and
				// removes it if a copy by XRootD fails. So the destination is a link to /dev/null,
				// which XRootD's client accepts with -f only.
				storage.Read:     {"gfal-copy", "-f", "{url}", "file://{dest}"},
				storage.Write:    {"gfal-copy", "-f", "-p", "file://{source}", "{url}"},
				storage.Stat:     {"gfal-stat", "{url}"},
				storage.List:     {"gfal-ls", "-l", "{url}"},
				storage.Remove:   {"gfal-rm", "{url}"}, // never -r: the files in a folder may not be weir's
				storage.Checksum: {"gfal-sum", "{url}", "{sum}"},
			},
			sink: "link", env: gfal, counted: true, said: gfalCopying,
			stat: statSize, list: gfalList, sum: lastWord, fail: gfalFailure, auth: noBasic,
		},
		"xrdcp": {
			argv: map[storage.Kind][]string{
				storage.Read:     {"xrdcp", "-f", "-s", "{url}", "{dest}"},
				storage.Write:    {"xrdcp", "-f", "-s", "{source}", "{url}"},
				storage.Stat:     {"xrdfs", "{server}", "stat", "{fullpath}"},
				storage.List:     {"xrdfs", "{server}", "ls", "-l", "{fullpath}"},
				storage.Mkdir:    {"xrdfs", "{server}", "mkdir", "{fullpath}"},
				storage.Remove:   {"xrdfs", "{server}", "rm", "{fullpath}"}, // also an empty folder, no other
				storage.Checksum: {"xrdfs", "{server}", "query", "checksum", "{fullpath}?cks.type={sum}"},
			},
			raw: true, sink: "/dev/null", counted: true, env: xrd,
			stat: statSize, list: xrdfsList, sum: lastWord, fail: xrdFailure, auth: noBasic,
		},
		"curl": {
			argv: map[storage.Kind][]string{
				storage.Read:   {"curl", "-q", "-K", "{config}", "-sSfgL", "-w", "%{{size_download}", "-o", "{dest}", "{url}"},
				storage.Write:  {"curl", "-q", "-K", "{config}", "-sSfgL", "-o", "/dev/null", "-T", "{source}", "{url}"},
				storage.Stat:   {"curl", "-q", "-K", "{config}", "-sSfgLI", "{url}"},
				storage.Remove: {"curl", "-q", "-K", "{config}", "-sSfgL", "-o", "/dev/null", "-X", "DELETE", "{url}"},
			},
			part: []string{"curl", "-q", "-K", "{config}", "-sSfgL", "-w", "%{{size_download}", "-o", "{dest}", "-r", "{offset}-{last}", "{url}"},
			sink: "link", counted: true,
			said: lastNumber, stat: headerSize, fail: curlFailure, auth: curlConfig,
		},
		"globus-url-copy": {
			argv: map[storage.Kind][]string{
				storage.Read:  {"globus-url-copy", "{url}", "file://{dest}"},
				storage.Write: {"globus-url-copy", "-cd", "file://{source}", "{url}"},
				storage.List:  {"globus-url-copy", "-list", "{url}/"},
			},
			sink: "link", counted: true,
			list: globusList, auth: noBasic,
		},
	}
}

// choose returns the tool that a target's command names or is.
func choose(argv []string) (tool, error) {
	if len(argv) == 1 {
		if t, ok := known()[argv[0]]; ok {
			return t.understood(argv[0])
		}
	}
	one, err := parse(argv, placeholders())
	if err != nil {
		return tool{}, err
	}
	kind := storage.Read
	if one.uses("source") {
		kind = storage.Write
	}
	if one.uses("source") && one.uses("dest") {
		return tool{}, errors.New("command: {source} and {dest} together: a command either writes or reads")
	}
	t := tool{lines: map[storage.Kind]line{kind: one}}
	parts := one.uses("offset") || one.uses("length")
	if parts {
		t.lines[partLine] = one
	}
	if kind == storage.Read && !parts && !one.uses("dest") {
		t.lines[storage.Run] = one
	}
	return t, nil
}

// understood returns the preset with its lines parsed.
func (t tool) understood(name string) (tool, error) {
	t.lines = map[storage.Kind]line{}
	all := maps.Clone(t.argv)
	if t.part != nil {
		all[partLine] = t.part
	}
	for kind, words := range all {
		one, err := parse(words, presetPlaceholders())
		if err != nil {
			return tool{}, fmt.Errorf("preset %s: %w", name, err)
		}
		t.lines[kind] = one
	}
	return t, nil
}
