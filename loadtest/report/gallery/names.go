package gallery

import (
	"fmt"
	"strings"

	"weir/loadtest/report/figure"
)

// Names returns the names of the figures' files, without an extension. They consist of lower case
// letters, digits and hyphens, and stay the same from run to run, because scripts and papers refer
// to them.
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

// nameOf derives the names of the figures that exist in every run from their content; other
// figures, such as the figures of single hosts, are named after their titles.
func nameOf(f *figure.Figure) string {
	against := "-vs-clients"
	switch f.X.Unit {
	case "clients":
	case "jobs":
		against = "-vs-jobs"
	default:
		against = "-vs-arrivals"
	}
	if f.ID == "ratetime" && strings.HasPrefix(f.Title, "Files") {
		return "files-vs-time"
	}
	yield := slug(f.Y.Name)
	if name := map[string]string{
		"curve": yield + against, "client": yield + against, // "throughput per client" is its name
		"latency": "latency" + against, "p50": "median-latency" + against, "p99": "p99-latency" + against,
		"redirect": "time-to-redirect" + against, "firstbyte": "time-to-first-byte" + against, "errors": "errors" + against,
		"cpu": "cpu" + against, "clientcpu": "cpu-of-clients" + against, "cpuefficiency": "cpu-efficiency" + against,
		"cluster": "cluster-throughput" + against, "lostjobs": "lost-jobs" + against, "events": "events" + against,
		"used":    "used-payload" + against,
		"scratch": "scratch-disk" + against, "links": "links" + against, "walltime": "wall-clock-time" + against,
		"sitewalltime": "wall-clock-time-by-site" + against, "efficiency": "efficiency" + against, "resources": "resources" + against,
		"matrix": "matrix-of-links", "challengetime": "rate-of-links-vs-time", "linkminutes": "worst-links-vs-time",
		"time": yield + "-vs-time", "ratetime": "operations-by-kind-vs-time", "latencytime": "latency-vs-time", "clienttime": "clients-vs-time",
		"errortime": "errors-vs-time", "heat": "latency-heat-map-vs-time", "tail": "latency-tail",
	}[f.ID]; name != "" {
		return name
	}
	title, _, _ := strings.Cut(f.Title, " (") // "(4 of 50)" has another number in another run
	title = strings.Replace(title, " against time", " vs time", 1)
	title = strings.Replace(title, " against load", strings.ReplaceAll(against, "-", " "), 1)
	name := slug(title)
	if strings.HasPrefix(f.X.Label, "time since") && !strings.HasSuffix(name, "-vs-time") {
		name += "-vs-time"
	}
	return name
}

// slug keeps lower case letters and digits, and replaces all other text between them with a hyphen.
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
