package main

import (
	"strings"
	"testing"

	"weir/lab"
	"weir/lab/labtest"
)

// A server that requires signed requests is measured with signatures, by clients with a session
// each and by clients that share a session. The report shows that each open, page read and close is
// signed.
func TestSignedRequests(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]string{"none": "requests not signed", "pedantic": "requests signed (3.00 per operation)"} {
		s := labtest.Start(t, lab.XRootDConfig{Auth: "gsi", Extra: "sec.level all " + level + "\n"})
		for _, session := range []string{"kept", "shared"} {
			f := measureFor(t, "--target", s.URL, "--clients", "2", "--duration", "30s", "--set", "load.ramp=0s", "--set", "load.warmup=0s",
				"--set", "auth="+s.AuthBlock(), "--set", "workload={kind: read, session: "+session+", think: 5ms}", "--set", "files.make.count=2",
				"--set", "files.make.size=1KiB", "--set", "stop.count=100")
			if step := f.Curve[0]; step.Errors > 0 || step.Done == 0 || (step.Signed > 0) != (level == "pedantic") {
				t.Errorf("level %s, session %s: %d operations, %d errors, %d requests were signed", level, session, step.Done, step.Errors, step.Signed)
			}
			if !strings.Contains(f.Work, want) {
				t.Errorf("level %s, session %s: the report says %q, want %q", level, session, f.Work, want)
			}
		}
	}
}
