package scenario

import "weir/internal/content"

// words returns the values that a key takes if it takes only some, by its
// path; [] stands for any number in a list.
func words() map[string][]string {
	return map[string][]string{
		"client":              {"xrdcp", "gfal-copy", "curl", "globus-url-copy"},
		"auth.method":         {"none", "unix", "krb5", "x509", "token", "basic", "s3"},
		"workload.kind":       {"read", "write", "mix", "metadata", "login", "job", "command-job"},
		"workload.job.access": {"direct", "staged"},
		"workload.session":    {"kept", "fresh", "shared"},
		"workload.pick":       {"random", "sequential", "zipf"},
		"workload.part.order": {"random", "sequential"},
		"workload.checksum":   content.Algorithms(),
		"load.arrivals":       {"constant", "poisson"},
		"on.batch":            Batches(),
		"hosts.[].role":       {"client", "server", "both", "other"},
	}
}
