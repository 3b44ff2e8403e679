package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/report/figure"
)

// balanced reports whether there are measurements of the servers that share the load other than the
// clients' own, which the chapter on data servers shows.
func balanced(f *analysis.Findings) bool {
	if f.Balance == nil {
		return false
	}
	return slices.ContainsFunc(f.Curve, func(s analysis.Step) bool {
		return slices.ContainsFunc(s.Backends, func(x analysis.BackendFigure) bool {
			return x.Sessions != nil || x.Log != nil || x.Interface != nil || x.Service != nil || x.CPU != nil || x.Cores != nil
		})
	})
}

// backendChapter describes the distribution of the load over several servers; it is empty if a
// single server handled all of it.
func backendChapter(f *analysis.Findings, plots []figure.Figure) chapter {
	if !balanced(f) {
		return chapter{}
	}
	c := chapter{ID: "backends", Title: "Backends", Charts: drawings(plots)}
	if s := reference(f); s != nil {
		c.Lead = balanceWords(f, s)
	}
	if text := firstWords(f); text != "" {
		c.Points = append(c.Points, text)
	}
	c.Points = append(c.Points, sourceWords(f))
	c.Parts = filled(backendSection(f), imbalanceSection(f), backendSteps(f))
	return c
}

// sourceWords labels the source of the shares.
func sourceWords(f *analysis.Findings) string {
	return "Source of the shares: " + map[string]string{
		analysis.ByClients:   "measurements of the clients",
		analysis.ByLog:       "transfer logs of the backends",
		analysis.ByInterface: "all traffic of the backends' interfaces",
		analysis.ByItself:    "the backends' own counters",
		analysis.ByBalancer:  "bytes forwarded by the balancer",
		analysis.BySessions:  "concurrent sessions, since the bytes of each backend are unknown",
	}[f.Balance.Source]
}

func backendAmount(x *analysis.BackendFigure) float64 {
	if x.Throughput != nil {
		return *x.Throughput
	}
	if x.Sessions != nil {
		return *x.Sessions
	}
	return 0
}

// ends returns the backends with the largest and the smallest share of a step.
func ends(s *analysis.Step) (most, least *analysis.BackendFigure) {
	for i := range s.Backends {
		x := &s.Backends[i]
		if most == nil || x.Share > most.Share {
			most = x
		}
		if least == nil || x.Share < least.Share {
			least = x
		}
	}
	return most, least
}

// balanceWords describes the shares of the backends of a step and compares them with random
// choices; "" if there was no work.
func balanceWords(f *analysis.Findings, s *analysis.Step) string {
	b, n := s.Balance, len(s.Backends)
	if b == nil || n == 0 {
		return ""
	}
	most, least := ends(s)
	text := fmt.Sprintf("Shares of %s, %s: largest %s (%s), smallest %s (%s), even %s; imbalance %s", say.Plural(n, "backend"), at(f, s),
		unit.Percent(most.Share), say.Plain(most.Name), unit.Percent(least.Share), say.Plain(least.Name), unit.Percent(1/float64(n)),
		times(b.Imbalance))
	if b.Choices == 0 {
		return text
	}
	word := "no more than chance"
	if b.Imbalance > b.Mostly {
		word = "more than chance"
	}
	return text + fmt.Sprintf(", by chance %s (p95 %s): %s", times(b.ByChance), times(b.Mostly), word)
}

// times formats a ratio.
func times(x float64) string { return fmt.Sprintf("%.2f", x) }

// firstWords names the backend that was saturated first, "" if no backend was saturated.
func firstWords(f *analysis.Findings) string {
	b := f.Balance
	if b == nil || b.First == nil {
		return ""
	}
	text := fmt.Sprintf("%s is full first, with %s: %s.", say.Plain(b.First.Backend), stepWords(f, b.First), say.Plain(b.First.Detail))
	if b.First.Resource == analysis.LimitYield {
		text = fmt.Sprintf("%s gives no more first, with %s: %s.", say.Plain(b.First.Backend), stepWords(f, b.First), say.Plain(b.First.Detail))
	}
	var later []string
	for i := range b.Backends {
		if l := b.Backends[i].Saturated; l != nil && l != b.First && l.Backend != b.First.Backend &&
			(l.Resource == analysis.LimitYield) == (b.First.Resource == analysis.LimitYield) {
			later = append(later, fmt.Sprintf("%s with %s", say.Plain(l.Backend), stepWords(f, l)))
		}
	}
	if n := len(later); n > 0 {
		const most = 5
		text += " Then " + strings.Join(later[:min(n, most)], ", ")
		if n > most {
			text += fmt.Sprintf(", and %d more", n-most)
		}
		text += "."
	}
	return text
}

func stepWords(f *analysis.Findings, l *analysis.BackendLimit) string {
	if s := stepOf(f, l.Step); s != nil {
		return at(f, s)
	}
	return say.Plural(l.From, "client")
}

// A backendColumn is a figure of backends that a table shows if it is known.
type backendColumn struct {
	name string
	cell func(x *analysis.BackendFigure) string // "": unknown
}

func backendColumns(f *analysis.Findings) []backendColumn {
	value := func(text func(float64) string, of func(*analysis.BackendFigure) *float64) func(*analysis.BackendFigure) string {
		return func(x *analysis.BackendFigure) string {
			if p := of(x); p != nil {
				return text(*p)
			}
			return ""
		}
	}
	type backend = *analysis.BackendFigure
	b := f.Balance
	all := []backendColumn{
		{"throughput", value(unit.Bits, func(x backend) *float64 { return x.Throughput })},
		{"share", func(x backend) string { return unit.Percent(x.Share) }},
		{"clients saw", value(unit.Bits, func(x backend) *float64 { return x.Clients })},
		{"transfer log", value(unit.Bits, func(x backend) *float64 { return x.Log })},
		{"interface", value(unit.Bits, func(x backend) *float64 { return x.Interface })},
		{"itself", value(unit.Bits, func(x backend) *float64 { return x.Service })},
		{"balancer", value(unit.Bits, func(x backend) *float64 { return x.Balancer })},
		{"operations/s", value(unit.Count, func(x backend) *float64 { return x.Operations })},
		{"sessions", value(unit.Significant, func(x backend) *float64 { return x.Sessions })},
		{"new/s", value(unit.Count, func(x backend) *float64 { return x.SessionRate })},
		{"waiting", value(unit.Significant, func(x backend) *float64 { return x.Queue })},
		{"transfers", value(unit.Significant, func(x backend) *float64 { return x.Transfers })},
		{"CPU", value(unit.Percent, func(x backend) *float64 { return x.CPU })},
		{"cores", value(unit.Significant, func(x backend) *float64 { return x.Cores })},
		{"network", value(unit.Percent, func(x backend) *float64 { return x.Network })},
		{"failed", func(x backend) string { return whole(x.Errors) }},
	}
	all = slices.DeleteFunc(all, func(c backendColumn) bool { // the quantity of the shares is the first column
		return c.name == map[string]string{analysis.ByClients: "clients saw", analysis.ByLog: "transfer log", analysis.ByInterface: "interface",
			analysis.ByItself: "itself", analysis.ByBalancer: "balancer"}[b.Source]
	})
	return slices.DeleteFunc(all, func(c backendColumn) bool {
		return !slices.ContainsFunc(f.Curve, func(s analysis.Step) bool {
			return slices.ContainsFunc(s.Backends, func(x analysis.BackendFigure) bool { t := c.cell(&x); return t != "" && t != "0" })
		})
	})
}

// backendSteps is the table of the work of each backend in each step.
func backendSteps(f *analysis.Findings) section {
	columns := backendColumns(f)
	inTexts := []string{"throughput", "share", "sessions", "waiting", "CPU", "cores", "network"}
	head := []string{f.Load(), "<backend"}
	for _, c := range columns {
		if !slices.Contains(inTexts, c.name) {
			c.name = "." + c.name
		}
		head = append(head, c.name)
	}
	s := section{ID: "backendsteps", Title: "Backends, step by step", table: table{Head: heads(head...)},
		Note: "Throughput is payload; what others than the clients report of it may include headers and requests. " +
			"Sessions are those at once, network is of the interface's speed."}
	for _, step := range steps(f) {
		for k := range step.Backends {
			x := &step.Backends[k]
			name := x.Name
			if x.Status != "" && x.Status != "UP" && x.Status != "no check" {
				name += " (" + x.Status + ")"
			}
			row := []string{loadCell(f, step), name}
			for _, c := range columns {
				row = append(row, cmp.Or(c.cell(x), "-"))
			}
			s.row(false, row...)
		}
	}
	return s
}

// backendSection lists the work of each backend in all steps together, and the step from which it
// was saturated.
func backendSection(f *analysis.Findings) section {
	s := section{ID: "backendswhole", Title: "All steps together",
		table: table{Head: heads("<backend", "throughput", "share", "<full from", "~because")}}
	for i := range f.Balance.Backends {
		x := &f.Balance.Backends[i]
		from, why := "-", ""
		if x.Saturated != nil {
			from, why = stepWords(f, x.Saturated), x.Saturated.Detail
		}
		s.row(f.Balance.First != nil && x.Name == f.Balance.First.Backend, x.Name, orDash(x.Throughput, unit.Bits),
			unit.Percent(x.Share), from, why)
	}
	return s
}

// imbalanceSection lists the imbalance of each step.
func imbalanceSection(f *analysis.Findings) section {
	s := section{ID: "imbalances", Title: "How even each step was",
		Note: "Imbalance is the largest share over the mean, variation the shares' standard deviation over their mean. " +
			"By chance: what so many random choices give on average, and exceed in one case of twenty.",
		table: table{Head: heads(f.Load(), "all together", "each client", "imbalance", "variation", "by chance", "p95", "choices")}}
	for _, x := range steps(f) {
		b := x.Balance
		if b == nil {
			continue
		}
		sum, each := unit.Bits(b.Sum), unit.Bits(b.Sum/max(x.ActiveClients, 1e-9))
		if f.Balance.Source == analysis.BySessions {
			sum, each = "-", "-"
		}
		s.row(false, loadCell(f, x), sum, each, times(b.Imbalance), times(b.Variation), times(b.ByChance), times(b.Mostly), whole(b.Choices))
	}
	return s
}
