package scenario

import (
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/workload"
	"weir/storage"
)

// Time returns the duration of all steps, without the drain after them; it is above 0. For a search
// it is the time limit.
func (p *Plan) Time() time.Duration {
	var sum time.Duration
	if p.Find != nil {
		sum = time.Duration(p.Find.Time)
	}
	for i := range p.Steps {
		sum += p.Steps[i].Time()
	}
	if t := time.Duration(p.Stop.Time); t > 0 {
		sum = min(sum, t)
	}
	return sum
}

// Time returns the duration of the step, with the rest after it.
func (s *Step) Time() time.Duration {
	return time.Duration(s.Ramp + s.Warmup + s.Duration + s.Cooldown)
}

// Left returns the remaining duration of the steps. There was load for spent, and the step at
// position place in p, from 1, began since ago; place is 0 before the first step begins. For a
// search the result is an upper limit.
func (p *Plan) Left(place int, since, spent time.Duration) time.Duration {
	var left time.Duration
	if p.Find != nil {
		left = time.Duration(p.Find.Time) - spent
	}
	for i := max(0, place-1); i < len(p.Steps); i++ {
		left += p.Steps[i].Time()
	}
	if place > 0 && place <= len(p.Steps) {
		left -= min(max(0, since), p.Steps[place-1].Time())
	}
	if t := time.Duration(p.Stop.Time); t > 0 {
		left = min(left, t-spent)
	}
	return max(0, left)
}

// MostClients returns the number of clients of the largest step, or the largest number that a
// search may use.
func (p *Plan) MostClients() int {
	most := 0
	if p.Find != nil {
		most = p.Find.Max
	}
	for _, s := range p.Steps {
		most = max(most, s.Clients)
	}
	return most
}

// WriteText writes a description of the plan for people: the workload, the machines, the steps, and
// estimates of the duration and the amount of data if they can be computed before the run.
func (p *Plan) WriteText(w io.Writer) error {
	p = p.Public()
	var b strings.Builder
	row := func(name, format string, args ...any) { fmt.Fprintf(&b, name+"\t"+format+"\n", args...) }
	p.targetText(row)
	p.clientsText(row)
	files, mean := p.filesText()
	row("files", "%s", files)
	p.linksText(row)
	row("load", "%s", p.loadText())
	p.whereText(row)
	atMost := ""
	if p.endsWithJobs() {
		atMost = "at most "
	}
	row("time", "%s%v in %s, then a graceful stop of up to %v", atMost, unit.Duration(p.Time()), say.Plural(len(p.Steps), "step"),
		p.GracefulStop)
	if p.Model != OpenModel {
		row("error pause", "%s", p.errorPauseText())
	}
	if p.RetryAfter == IgnoreRetryAfter {
		row("Retry-After", "ignored")
	}
	row("amount", "%s", p.amountText(mean))
	if stop := p.stopText(); stop != "" {
		row("stop", "%s", stop)
	}
	for i := range p.Hosts {
		row("host", "%s", p.Hosts[i].Describe())
	}
	for _, t := range p.Thresholds {
		row("threshold", "%s", t)
	}
	for _, b := range p.Boundaries {
		row("boundary", "%s", b)
	}
	for _, e := range p.Events {
		row("event", "after %v: %s", e.At, e.Run)
	}
	row("seed", "%d", p.Seed)
	if err := aligned(w, b.String(), 0); err != nil {
		return err
	}
	return p.writeSteps(w)
}

// targetText writes the rows of the target, the client program, the authentication and the origin.
func (p *Plan) targetText(row func(name, format string, args ...any)) {
	row("name", "%s", p.Name)
	row("target", "%s (%s)", p.Target, p.Driver)
	p.serviceText(row)
	if len(p.Command) > 0 {
		row("client", "%s", strings.Join(p.Command, " ")+p.sinkText())
	}
	if p.Auth.Method != "" {
		row("auth", "%s", p.authText())
	}
	if p.Origin != nil {
		row("origin", "%s", p.originText())
	}
}

// authText returns the method of authentication, the user, and the variable or the file of the
// token.
func (p *Plan) authText() string {
	text := strings.TrimSpace(string(p.Auth.Method) + " " + p.Auth.User)
	switch {
	case p.Auth.Method != storage.TokenAuth:
	case p.Auth.TokenVariable != "":
		text += " in variable " + p.Auth.TokenVariable
	case p.Auth.TokenFile != "":
		text += " in file " + p.Auth.TokenFile
	}
	return text
}

// sinkText describes the destination of the data that a client program reads, if weir constructs
// the arguments of the program. It returns "" for other programs.
func (p *Plan) sinkText() string {
	reads := slices.Contains(p.scenario().operations(), "read")
	if !reads || (Command{p.Command}).own() {
		return ""
	}
	if p.Work.Verify > 0 {
		return "; the payload goes to /dev/null, or to a scratch file where it is verified (" + p.Work.Verify.String() + " of reads)"
	}
	return "; the payload goes to /dev/null"
}

// linksText writes the properties of the links.
func (p *Plan) linksText(row func(name, format string, args ...any)) {
	for _, l := range p.Links {
		text := l.Spec.Complete().String()
		if over := p.Links.Over(l.Name); len(over) > 0 {
			text += "; a trunk, shared by " + strings.Join(over, ", ")
		}
		row(strings.TrimSpace("link "+l.Name), "%s", text)
	}
}

// clientsText writes the workloads of the clients.
func (p *Plan) clientsText(row func(name, format string, args ...any)) {
	if len(p.Populations) == 0 {
		row("workload", "%s", p.WorkText())
	}
	for _, text := range p.populationTexts() {
		row("population", "%s", text)
	}
	if p.Work.Job != nil {
		row("one job", "%s", oneJob(p.Work.Job, p.Links))
	}
}

// whereText writes the machines of the clients.
func (p *Plan) whereText(row func(name, format string, args ...any)) {
	if on := p.On.Text(p.MostClients()); on != "" {
		row("clients on", "%s", on)
	}
}

// aligned writes a table whose cells are separated by tabs.
func aligned(w io.Writer, table string, flags uint) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', flags)
	if _, err := io.WriteString(t, table); err != nil {
		return err
	}
	return t.Flush()
}

func (p *Plan) writeSteps(w io.Writer) error {
	open := p.Model == OpenModel
	head := "step\tclients\tramp\twarm-up\tduration\tfrom\t\n"
	if open {
		head = "step\trate\tclients, at most\tramp\twarm-up\tduration\tfrom\t\n"
	}
	var b strings.Builder
	b.WriteString("\n" + head)
	var from unit.Duration
	for _, s := range p.Steps {
		rate := ""
		if open {
			rate = s.Rate.String() + "\t"
		}
		fmt.Fprintf(&b, "%d\t%s%d\t%v\t%v\t%v\t%v\t\n", s.Number, rate, s.Clients, s.Ramp, s.Warmup, s.Duration, from)
		from += s.Ramp + s.Warmup + s.Duration + s.Cooldown
	}
	return aligned(w, b.String(), tabwriter.AlignRight)
}

// WorkText describes the work of each client. It names the settings that make a result incomparable
// with other results.
func (p *Plan) WorkText() string {
	if len(p.Populations) > 0 {
		return "one of " + strings.Join(p.populationTexts(), "; ")
	}
	if p.Work.Session == workload.SharedSession {
		return p.WorkTextWith("one shared session")
	}
	return p.WorkTextWith("session " + string(p.Work.Session))
}

// WorkTextWith is WorkText with session as the description of the clients' sessions.
func (p *Plan) WorkTextWith(session string) string {
	w := p.Work
	if w.Kind == workload.CopyWork && p.Origin == nil {
		return "copy files between sites, each verified by " + w.Sum // a record of transfers has no client of weir
	}
	parts := []string{string(w.Kind)}
	if p.Origin != nil {
		parts[0] = "third-party copies from " + p.Public().Origin.URL
	}
	if len(w.Mix) > 0 {
		var mix []string
		for _, k := range slices.Sorted(maps.Keys(w.Mix)) {
			mix = append(mix, fmt.Sprintf("%s %v", k, w.Mix[k]))
		}
		parts[0] += " (" + strings.Join(mix, ", ") + ")"
	}
	if !unset(w.Size) {
		parts = append(parts, "files of "+w.Size.Text())
	}
	if w.Job != nil {
		parts = append(parts, jobText(w.Job))
	}
	if w.Part != nil {
		parts = append(parts, fmt.Sprintf("%s of %v", say.Plural(w.Part.Count, w.Part.Order+" part"), w.Part.Size))
	}
	parts = append(parts, "pick "+w.Pick, session)
	parts = append(parts, p.waysText()...)
	parts = append(parts, "think "+spanText(w.Think))
	if w.Verify > 0 {
		parts = append(parts, fmt.Sprintf("%v verified by %s", w.Verify, w.Sum))
	}
	parts = append(parts, "timeout "+w.Timeout.String())
	if w.Retries > 0 {
		parts = append(parts, say.Plural(w.Retries, "retry"))
	}
	return strings.Join(parts, ", ")
}

// waysText names the unusual modes of reading and writing, if the protocol has them.
func (p *Plan) waysText() []string {
	u, err := url.Parse(p.Target)
	if err != nil {
		return nil
	}
	var parts []string
	if r := p.Work.Resume; r == storage.ResumeOwn || r == storage.ResumeShared {
		parts = append(parts, map[storage.Resumption]string{storage.ResumeOwn: "TLS sessions resumed by each client",
			storage.ResumeShared: "TLS sessions resumed by all clients"}[r])
	}
	if p.Work.Sync && (rooted(u.Scheme) || u.Scheme == "file") {
		parts = append(parts, "each file synced")
	}
	if !rooted(u.Scheme) {
		return parts
	}
	ops := (&Scenario{Work: p.Work}).operations()
	if p.Work.Plain {
		both := slices.Contains(ops, "read") && slices.Contains(ops, "write")
		switch {
		case both:
			parts = append(parts, "plain reads and writes (no page checksums)")
		case slices.Contains(ops, "write"):
			parts = append(parts, "plain writes (no page checksums)")
		default:
			parts = append(parts, "plain reads (no page checksums)")
		}
	}
	if p.Work.KeepOpen {
		parts = append(parts, "files stay open")
	}
	return parts
}

// Jobs returns the number of jobs of all steps, 0 if clients run as many jobs as they can in the
// measurement time.
func (p *Plan) Jobs() (n int64) {
	for i := range p.Steps {
		n += int64(p.Steps[i].Clients) * int64(p.Steps[i].Jobs)
	}
	return n
}

// endsWithJobs reports whether steps end when their jobs are done.
func (p *Plan) endsWithJobs() bool { return len(p.Steps) > 0 && p.Steps[0].Jobs > 0 }

func (p *Plan) loadText() string {
	if p.Model == OpenModel {
		how := "evenly spaced"
		if p.Steps[0].Poisson {
			how = "Poisson"
		}
		return "open: " + how + " arrivals, whether or not the service keeps up"
	}
	if p.endsWithJobs() {
		return fmt.Sprintf("closed: up to %s; each does %s and leaves, and a step ends with the last",
			say.Plural(p.MostClients(), "virtual client"), say.Plural(p.Steps[0].Jobs, "job"))
	}
	return fmt.Sprintf("closed: up to %s, each waiting for its answer", say.Plural(p.MostClients(), "virtual client"))
}

func (p *Plan) errorPauseText() string {
	if p.ErrorPause == 0 {
		return "none"
	}
	return fmt.Sprintf("up to %v for a client after three failed tasks in a row", p.ErrorPause)
}
