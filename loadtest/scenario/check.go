package scenario

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"weir/internal/document"
	"weir/internal/tags"
	"weir/loadtest/workload"
	"weir/storage"
)

// A checker finds contradictions and invalid values in a scenario, which may come from a file or
// from code.
type checker struct {
	*Scenario
	known document.Mistakes // mistakes that were found earlier
	found document.Mistakes
}

// check returns the mistakes of the scenario that are not among known.
func (s *Scenario) check(known document.Mistakes) document.Mistakes {
	c := &checker{Scenario: s, known: known}
	c.target()
	c.command()
	c.checkProgram()
	if len(c.Populations) > 0 {
		c.checkPopulations()
	}
	c.each((*checker).work)
	c.each((*checker).files)
	c.load()
	c.links()
	c.on()
	c.server()
	c.balancer()
	c.hosts()
	c.auth()
	c.each((*checker).origin)
	c.repeat()
	for i, t := range s.Thresholds {
		if _, err := ParseThreshold(t); err != nil {
			c.say(fmt.Sprintf("thresholds.%d", i), "%v", err)
		}
	}
	for i, b := range s.Boundaries {
		if _, err := ParseBoundary(b); err != nil {
			c.say(fmt.Sprintf("boundaries.%d", i), "%v", err)
		}
	}
	for i, e := range s.Events {
		c.refuse(e.At < 0, fmt.Sprintf("events.%d.at", i), "%v: use a time from the beginning of the load", e.At)
		c.refuse(strings.TrimSpace(e.Run) == "", fmt.Sprintf("events.%d.run", i), "no command: use one of the shell, such as 'kill -STOP 4711'")
	}
	c.refuse(!scenarioName.MatchString(s.Name), "name", "%s is not a name; use up to 64 letters, digits, dots, _ and -",
		document.Quote(s.Name))
	return c.found
}

// say reports a mistake of the key with the given path, unless a mistake of it is known already.
func (c *checker) say(path, format string, args ...any) {
	if c.wrong(path) {
		return
	}
	at := c.place(path)
	c.found = append(c.found, &document.Mistake{
		File: c.file, Line: at.Line, Column: at.Column, Set: at.Set, Text: path + ": " + fmt.Sprintf(format, args...),
	})
}

// refuse calls say if bad is true.
func (c *checker) refuse(bad bool, path, format string, args ...any) {
	if bad {
		c.say(path, format, args...)
	}
}

// wrong reports whether a mistake is known of the key path, of a key below it, or of the value that
// stands in its place.
func (c *checker) wrong(path string) bool {
	at, given := c.where[path]
	return slices.ContainsFunc(c.known, func(m *document.Mistake) bool {
		same := given && at.Line > 0 && m.Set == "" && m.Line == at.Line && m.Column == at.Column
		return same || strings.HasPrefix(m.Text, path)
	})
}

// place returns the position of path, or of the nearest key above it, in the file or on the command
// line.
func (s *Scenario) place(path string) document.Place {
	for {
		if at, ok := s.where[path]; ok {
			return at
		}
		i := strings.LastIndexByte(path, '.')
		if i < 0 {
			return document.Place{}
		}
		path = path[:i]
	}
}

func (s *Scenario) given(path string) bool {
	_, ok := s.where[path]
	return ok
}

func (c *checker) target() {
	if c.Target == "" {
		c.say("target", "missing; name the service, as in target: https://localhost:8443/data, or %s for weir's own server", BuiltIn)
		return
	}
	if len(c.Others) == 0 {
		if c.Target != BuiltIn {
			c.endpoint("target", c.Target)
		}
		return
	}
	c.endpoints()
}

// endpoint checks one URL.
func (c *checker) endpoint(path, target string) {
	if like := WithScheme(target); like != "" {
		c.say(path, "%s has no scheme; did you mean %s?", document.Quote(target), like)
		return
	}
	u, err := url.Parse(target)
	if err != nil {
		if parse, ok := errors.AsType[*url.Error](err); ok {
			err = parse.Err // without the text, which may hold a password
		}
		c.say(path, "not a URL; %v", err)
		return
	}
	if _, secret := u.User.Password(); secret {
		c.say(path, "a scenario must not contain secrets; use auth: {method: basic, user: %s, password_file: ...}", u.User.Username())
		return
	}
	for name := range u.Query() {
		c.refuse(slices.Contains([]string{"authz", "access_token", "token", "password", "secret"}, strings.ToLower(name)),
			path, "a scenario must not contain secrets; omit %s, and use auth.token_file or auth.token_variable", name)
	}
	switch {
	case u.Fragment != "":
		c.say(path, "the part of a URL after # is never sent to a server; omit it, or write %%23 for a # in a name")
	case u.Scheme == "":
		c.say(path, "%s has no scheme; write it with its protocol, as in https://localhost:8443/data", document.Quote(target))
	case u.Host == "" && u.Scheme == "simulated":
		c.say(path, "%s has no name; write it as in simulated://demo?servers=4&service=10ms", document.Quote(target))
	case u.Host == "" && u.Scheme != "file":
		c.say(path, "%s has no host; write it as in %s://localhost:8443/data", document.Quote(target), u.Scheme)
	}
}

// scenarioName matches the name of a scenario.
var scenarioName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// secretArgument matches the usual forms of an argument that holds a secret.
var secretArgument = regexp.MustCompile(`(?i)^--?(password|passwd|token|secret)=.|authorization: *\S|bearer +\S|://[^/@ ]+:[^/@ ]+@`)

// command reports arguments that contain secrets. It detects only the usual forms of secrets.
func (c *checker) command() {
	for i, arg := range c.Client.Command {
		if secretArgument.MatchString(arg) {
			c.say(fmt.Sprintf("client.command.%d", i), "a scenario must not contain secrets; have the program read it from a file or an "+
				"environment variable")
		}
	}
}

func (c *checker) work() {
	if c.wrong("workload.kind") {
		return // all other checks depend on the kind
	}
	errs := workload.Check(c.Work)
	if joined, ok := errs.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			if key, ok := errors.AsType[*workload.KeyError](err); ok {
				c.say("workload."+key.Key, "%s", key.Text)
			} else {
				c.say("workload", "%v", err)
			}
		}
	}
	w := c.Work
	c.session()
	writes := slices.Contains(c.operations(), "write")
	c.refuse(c.given("workload.size") && (!writes || w.Kind == workload.JobWork),
		"workload.size", "applies to kinds that write, and kind %s does not; the sizes of files to read follow from files", w.Kind)
	c.refuse(c.given("workload.keep") && !writes && w.Kind != workload.CopyWork && w.Keep,
		"workload.keep", "applies to kinds that write, and kind %s does not; omit it", w.Kind)
	c.jobs()
	c.refuse(w.Timeout == 0, "workload.timeout", "must be above 0; a service that hangs would block the run for ever")
}

// jobs checks that the kind of job and the client program can be combined.
func (c *checker) jobs() {
	own := c.Client.own()
	switch {
	case c.Work.Kind == workload.CommandJobWork && !own && len(c.Client.Command) == 0:
		c.say("workload.kind", "a command-job needs a program; name it, as in client: {command: [python3, analysis.py, \"{url}\"]}")
	case c.Work.Kind == workload.CommandJobWork && !own:
		c.say("client", "%s reads or writes files; name the program that does a job, as in {command: [python3, analysis.py, \"{url}\"]}, "+
			"or use workload.kind read", c.Client.Command[0])
	case c.Work.Kind == workload.JobWork && len(c.Client.Command) > 0 && (c.Work.Job == nil || c.Work.Job.Access != workload.Staged):
		c.say("workload.kind", "jobs of kind job are done by weir's own clients; omit client, use access: staged to have the program copy "+
			"files, or use command-job for your own program")
	}
}

// session checks that the clients can share sessions, and reports settings that do not apply to
// external programs.
func (c *checker) session() {
	w, external := c.Work, len(c.Client.Command) > 0
	switch scheme := c.scheme(); {
	case !slices.Contains(tags.Words[Scenario]("workload.session"), string(w.Session)):
		c.say("workload.session", "unknown session %s; use kept, fresh or shared", document.Quote(string(w.Session)))
	case w.Session != workload.SharedSession:
	case external:
		c.say("workload.session", "external programs cannot share a session; use kept or fresh, or omit client")
	case w.Kind == workload.LoginWork:
		c.say("workload.session", "each operation of kind login is a session of its own; use fresh")
	case !rooted(scheme) && scheme != "simulated":
		c.say("workload.session", "clients of %s:// cannot share a session, only those of root:// and roots:// can; use kept or fresh", scheme)
	}
	if most := inFlight(w.Session); rooted(c.scheme()) && !external && w.InFlight > most {
		c.say("workload.in_flight", "%d is out of range; use up to %d for root://, %d if the session is shared", w.InFlight, inFlight(""),
			inFlight(workload.SharedSession))
	}
	tls := slices.Contains([]string{"https", "davs"}, c.scheme()) || rooted(c.scheme())
	switch r := w.Resume; {
	case r != "" && !slices.Contains(tags.Words[Scenario]("workload.tls_resumption"), string(r)):
		c.say("workload.tls_resumption", "unknown tls_resumption %s; use none, client or shared", document.Quote(string(r)))
	case r == "" || r == storage.ResumeNone:
	case external:
		c.say("workload.tls_resumption", "an external program handles its own TLS sessions; omit tls_resumption or client")
	case !tls:
		c.say("workload.tls_resumption", "TLS sessions are resumed with https://, davs://, roots:// and root://; omit tls_resumption")
	}
	c.refuse(external && w.Plain, "workload.plain", "an external program reads and writes in its own way; omit plain or client")
	c.refuse(external && w.KeepOpen, "workload.keep_open", "an external program closes its files when it ends; omit keep_open or client")
}

// inFlight returns the largest number of concurrent requests that the driver for root:// sends for
// one client.
func inFlight(session workload.Session) int {
	if session == workload.SharedSession {
		return 63
	}
	return 256
}

// scheme returns the target's scheme.
func (c *checker) scheme() string {
	if c.Target == BuiltIn {
		return serverScheme
	}
	u, err := url.Parse(c.Target)
	if err != nil {
		return ""
	}
	return u.Scheme
}

// rooted reports whether scheme belongs to the XRootD protocol.
func rooted(scheme string) bool {
	return slices.Contains([]string{"root", "roots", "xroot", "xroots"}, scheme)
}

// operations returns the kinds of operations of the workload.
func (s *Scenario) operations() []string {
	w := s.Work
	switch w.Kind {
	case workload.JobWork:
		if workload.Writes(w) {
			return []string{"read", "write"}
		}
		return []string{"read"}
	case workload.CommandJobWork:
		return []string{"run"}
	case workload.MixWork, workload.MetadataWork:
	default:
		return []string{string(w.Kind)}
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(w.Mix)) {
		if w.Mix[k] > 0 {
			out = append(out, k)
		}
	}
	return out
}

// needsFiles reports whether the workload needs files that exist before the run.
func (s *Scenario) needsFiles() bool {
	return slices.ContainsFunc(s.operations(), func(k string) bool {
		return slices.Contains([]string{"read", "stat", "checksum", "locate", "run", "copy"}, k)
	})
}

// WithScheme returns the probable meaning of a target without a scheme: a path, or a host with a
// port or a dot. It returns "" for every other text.
func WithScheme(target string) string {
	host, path, _ := strings.Cut(target, "/")
	name, port, _ := strings.Cut(host, ":")
	digits := port != "" && strings.Trim(port, "0123456789") == ""
	plain := name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '.' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	switch {
	case host == "" && path != "":
		return document.Quote("file://" + target)
	case strings.Trim(host, ".") == "" && path != "", strings.HasPrefix(target, "~/"):
		return "file:// and the folder's whole path"
	case plain && digits, plain && port == "" && !strings.HasSuffix(host, ":") && strings.Contains(name, "."):
		return document.Quote("http://" + target)
	}
	return ""
}
