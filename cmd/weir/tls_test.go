package main

import (
	"path/filepath"
	"strings"
	"testing"

	"weir/lab"
	"weir/lab/labtest"
)

// A run of fresh sessions over TLS measures connect, handshake and first byte, and reports the
// share of the handshakes that resumed a session, which is 0 unless the scenario sets
// workload.tls_resumption.
func TestHandshakesAreReported(t *testing.T) {
	t.Parallel()
	s := labtest.Start(t, lab.NginxConfig{Config: lab.Config{TLS: true}})
	fill(t, s.Data, 3, 4096)
	for mode, most := range map[string]bool{"none": false, "client": true, "shared": true} {
		dir := filepath.Join(t.TempDir(), "run")
		code, said := weir(t, "run", "--quiet", "--out", dir, s.URLs["https"], "--clients", "4", "--duration", "1s", "--set",
			"auth.ca_dir="+s.CADir, "--set", "workload.session=fresh", "--set", "workload.tls_resumption="+mode)
		if code != exitFine && code != exitInvalid {
			t.Fatalf("%s: exit code %d\n%s", mode, code, said)
		}
		f := findings(t, dir)
		if len(f.Curve) != 1 || f.Curve[0].Connect == nil || f.Curve[0].Handshake == nil || f.Curve[0].FirstByte == nil {
			t.Fatalf("%s: %+v\n%s", mode, f.Curve, said)
		}
		step := &f.Curve[0]
		if step.Handshakes < step.Done || step.Handshake.P50 <= 0 || step.FirstByte.P50 < step.Connect.P50+step.Handshake.P50/2 {
			t.Errorf("%s: %d handshakes of %d operations: connect %+v, handshake %+v, first byte %+v", mode, step.Handshakes, step.Done,
				step.Connect, step.Handshake, step.FirstByte)
		}
		if (step.Resumed > step.Handshakes/2) != most || !most && step.Resumed > 0 {
			t.Errorf("%s: %d of %d handshakes resumed", mode, step.Resumed, step.Handshakes)
		}
		code, said = weir(t, "report", "--verbose", dir)
		if code != exitFine && code != exitInvalid || !strings.Contains(said, "TLS handshake p50") {
			t.Errorf("%s: exit code %d, the report has no handshakes:\n%s", mode, code, said)
		}
	}
}
