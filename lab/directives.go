package lab

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"
)

// XRootDDirectives returns the directives of XRootD's configuration that XRootDConfig.Set can have:
// directives that change how servers work, but not their addresses, their users, or the folders and
// programs that they use.
func XRootDDirectives() []string {
	return []string{
		"cms.delay", "cms.dfs", "cms.fxhold", "cms.perf", "cms.ping", "cms.request", "cms.sched", "cms.space", "cms.trace",
		"ofs.cksrdsz", "ofs.maxdelay", "ofs.persist", "ofs.trace",
		"oss.alloc", "oss.fdlimit", "oss.maxsize", "oss.memfile", "oss.preread", "oss.trace",
		"sec.level", "sec.trace",
		"xrd.buffers", "xrd.sched", "xrd.timeout", "xrd.trace",
		"xrootd.async", "xrootd.chksum", "xrootd.fsoverload", "xrootd.limit", "xrootd.log", "xrootd.monitor", "xrootd.prep", "xrootd.trace",
	}
}

// maxValue is the maximum length of the value of a directive.
const maxValue = 1000

// directives returns the lines for settings, each DIRECTIVE=VALUE. A value is one line of printable characters in
// which XRootD's reader finds nothing but words: no line end, no continued line, no comment and no variable.
func (c *XRootDConfig) directives() (string, error) {
	var lines strings.Builder
	for _, set := range c.Set {
		name, value, ok := strings.Cut(set, "=")
		value = strings.TrimSpace(value)
		switch known := slices.Contains(XRootDDirectives(), name); {
		case !ok || name == "" || value == "":
			return "", fmt.Errorf("setting %q: write DIRECTIVE=VALUE, as in xrd.sched=\"mint 8 maxt 1024\"", set)
		case !known:
			return "", fmt.Errorf("setting %q: directive %q is not one that can be set: use one of %s", set, name,
				strings.Join(XRootDDirectives(), ", "))
		case len(value) > maxValue:
			return "", fmt.Errorf("setting %s: a value of %d bytes: use up to %d", name, len(value), maxValue)
		case strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }) || strings.ContainsAny(value, `\$#`):
			return "", fmt.Errorf(`setting %s: value %q: use one line of printable characters without \, $ and #`, name, value)
		case strings.HasPrefix(name, "cms.") && c.Servers == 0:
			return "", fmt.Errorf("setting %s: a single server has no cmsd: add data servers", name)
		case strings.HasPrefix(name, "sec.") && c.Auth == "none":
			return "", fmt.Errorf("setting %s: no authentication is configured: choose an authentication", name)
		}
		lines.WriteString(name + " " + value + "\n")
	}
	return lines.String(), nil
}

// ignoredDirectives returns the line in which a server reports that it does not understand a part
// of the settings, "" if it reports no such part.
func ignoredDirectives(s *System, settings []string) string {
	if len(settings) == 0 {
		return ""
	}
	for _, p := range s.parts {
		log, err := os.ReadFile(p.log)
		if err != nil {
			continue // a part without a log has printed nothing
		}
		for line := range strings.Lines(string(log)) {
			_, what, found := strings.Cut(line, "ignoring ")
			for _, set := range settings {
				_, name, _ := strings.Cut(set, ".")
				name, _, _ = strings.Cut(name, "=")
				if found && strings.Contains(what, name) {
					return p.name + ": " + strings.TrimSpace(line)
				}
			}
		}
	}
	return ""
}
