package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/analysis"
	"weir/internal/say"
	"weir/internal/unit"
	"weir/storage"
)

// redirected tells whether the service sends clients to other servers, or
// makes them wait: then it matters where the time goes.
func redirected(f *analysis.Findings) bool {
	return slices.ContainsFunc(f.Curve, func(s analysis.Step) bool { return s.Redirect != nil || s.Waits > 0 })
}

// A stage is a stretch of an operation's time that is told apart.
type stage struct {
	name string
	of   func(*analysis.Step) *analysis.Quantiles
}

func stages() []stage {
	return []stage{
		{"login", func(s *analysis.Step) *analysis.Quantiles { return s.Login }},
		{"redirect", func(s *analysis.Step) *analysis.Quantiles { return s.Redirect }},
		{"first byte", func(s *analysis.Step) *analysis.Quantiles { return s.FirstByte }},
		{"whole", func(s *analysis.Step) *analysis.Quantiles { return s.Latency }},
	}
}

const whereNote = "Each from the operation's begin: to the end of the login (of new sessions), to the redirector's answer, to the first byte, to the end. " +
	"A slow redirector shows in redirect, a slow data server in what comes after it."

// whereSection is the table of where the time goes; without rows where the
// service sends clients nowhere.
func whereSection(f *analysis.Findings) section {
	s := section{ID: "where", Title: "Where the time goes", Note: whereNote, Points: waits(f)}
	if !redirected(f) {
		return s
	}
	names := []string{f.Load()}
	for _, st := range stages() {
		names = append(names, st.name+" p50", "p99")
	}
	s.Head = heads(append(names, "waits")...)
	for _, x := range steps(f) {
		cells := []string{loadCell(f, x)}
		for _, st := range stages() {
			q := took(st.of(x))
			cells = append(cells, q[0], q[1])
		}
		s.row(false, append(cells, unit.Count(float64(x.Waits)))...)
	}
	return s
}

// waits says in a sentence for each step how long the service let clients wait.
func waits(f *analysis.Findings) []string {
	var all []string
	for i := range f.Curve {
		s := &f.Curve[i]
		if s.Waits > 0 {
			all = append(all, fmt.Sprintf("With %s the service asked clients to wait %s, %s each on average%s.",
				at(f, s), say.Times(s.Waits), unit.Seconds(s.Waited/float64(s.Waits)), ofLatency(s)))
		}
		if s.Reopened > 0 {
			all = append(all, fmt.Sprintf("With %s files were opened again %s because their data server was lost.", at(f, s), say.Times(s.Reopened)))
		}
	}
	return all
}

// ofLatency compares the waiting with the latency of the operations that ended
// well; those that failed have waited, too.
func ofLatency(s *analysis.Step) string {
	if s.Latency == nil {
		return ", and no operation ended well"
	}
	share := s.Waited / (s.Latency.Mean * float64(s.Latency.Count))
	if share > 1 {
		return ", mostly for operations that failed"
	}
	return "; that is " + unit.Percent(share) + " of the latency"
}

// classes lists failures by class, "busy 12, reset 1".
func classes(by map[storage.Class]int64) string {
	var all []string
	for _, class := range slices.Sorted(maps.Keys(by)) {
		all = append(all, fmt.Sprintf("%s %d", class, by[class]))
	}
	return strings.Join(all, ", ")
}

func serverName(name string) string {
	if name == "" {
		return "(the target itself)"
	}
	return name
}

// serverSteps is the table of what each data server did in each step.
func serverSteps(f *analysis.Findings) section {
	name, _ := load(f)
	s := section{ID: "shares", Title: "Data servers, step by step",
		Note:  "Shares of each step's throughput and operations. Failures of a server that could not even be reached are its own; those of the target itself are the redirector's.",
		table: table{Head: heads(name, "<server", "throughput", "share", "operations/s", "share", "failed", "<")}}
	for i := range f.Curve {
		for _, x := range f.Curve[i].Servers {
			s.row(false, at(f, &f.Curve[i]), serverName(x.Name), unit.Bits(x.Throughput), unit.Percent(x.ThroughputShare),
				unit.Count(x.Operations), unit.Percent(x.OperationsShare), unit.Count(float64(x.Errors)), classes(x.ErrorsBy))
		}
	}
	return s
}

// mostServers is how many data servers a terminal shows.
const mostServers = 12

// serverShares is what each data server did at the best step, or at the last
// one. Where it says no more than the backends do, it has no rows.
func serverShares(f *analysis.Findings) section {
	s := reference(f)
	failed := s != nil && slices.ContainsFunc(s.Servers, func(x analysis.Share) bool { return x.Errors > 0 })
	if s == nil || len(s.Servers) < 2 || balanced(f) && !failed {
		return section{}
	}
	out := section{Title: "Data servers, with " + at(f, s), table: table{Head: heads("throughput", "ops", "failed", "<data server")}}
	for i, x := range s.Servers {
		if i == mostServers {
			out.row(false, "", "", "", fmt.Sprintf("and %d more", len(s.Servers)-i))
			break
		}
		name := serverName(x.Name)
		if by := classes(x.ErrorsBy); by != "" {
			name += " (" + by + ")"
		}
		out.row(false, unit.Percent(x.ThroughputShare), unit.Percent(x.OperationsShare), unit.Count(float64(x.Errors)), name)
	}
	return out
}
