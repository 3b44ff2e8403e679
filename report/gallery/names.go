package gallery

import (
	"fmt"
	"strings"

	"weir/figure"
)

// Names returns the names of the figures' files, without an ending. They are
// made of lower case letters, digits and hyphens, and stay the same from run to
// run: scripts and papers name them.
func Names(figures []figure.Figure) []string {
	used := map[string]bool{}
	var all []string
	for i := range figures {
		name := nameOf(&figures[i])
		for n := 2; used[name]; n++ {
			name = fmt.Sprintf("%s-%d", nameOf(&figures[i]), n)
		}
		used[name] = true
		all = append(all, name)
	}
	return all
}

// nameOf names the figures that weir has always by what they show; others, as
// those of single hosts, by their titles.
func nameOf(f *figure.Figure) string {
	against := "-vs-clients"
	if f.X.Unit != "clients" {
		against = "-vs-arrivals"
	}
	yield := slug(f.Y.Name)
	switch f.ID {
	case "curve":
		return yield + against
	case "client":
		return yield + against // "throughput per client" is its name
	case "latency", "redirect", "errors", "cpu", "walltime", "efficiency", "resources", "cpuefficiency", "p99", "p50":
		return map[string]string{"latency": "latency", "redirect": "time-to-redirect", "errors": "errors", "cpu": "cpu", "walltime": "wall-clock-time",
			"efficiency": "efficiency", "resources": "resources", "cpuefficiency": "cpu-efficiency", "p99": "p99-latency", "p50": "median-latency"}[f.ID] + against
	case "firstbyte":
		return "time-to-first-byte" + against
	case "time":
		return yield + "-vs-time"
	case "ratetime":
		if strings.HasPrefix(f.Title, "Files") {
			return "files-vs-time"
		}
		return "operations-by-kind-vs-time"
	case "latencytime", "clienttime", "errortime", "heat":
		return map[string]string{"latencytime": "latency", "clienttime": "clients", "errortime": "errors", "heat": "latency-heat-map"}[f.ID] + "-vs-time"
	case "tail":
		return "latency-tail"
	case "clientcpu":
		return "cpu-of-clients" + against
	}
	title, _, _ := strings.Cut(f.Title, " (") // "(4 of 50)" is another number in another run
	title = strings.Replace(title, " against time", " vs time", 1)
	title = strings.Replace(title, " against load", strings.ReplaceAll(against, "-", " "), 1)
	name := slug(title)
	if strings.HasPrefix(f.X.Label, "time since") && !strings.HasSuffix(name, "-vs-time") {
		name += "-vs-time"
	}
	return name
}

// slug keeps lower case letters and digits, and a hyphen for all between them.
func slug(s string) string {
	const most = 60
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		switch {
		case b.Len() >= most:
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	if name := strings.TrimRight(b.String(), "-"); name != "" {
		return name
	}
	return "figure"
}
