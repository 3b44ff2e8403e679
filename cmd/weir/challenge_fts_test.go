package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/tpc"
	"weir/lab"
	"weir/lab/labtest"
	"weir/transfer/access"
	"weir/transfer/coordinator"
	"weir/transfer/fts/rest"
	"weir/transfer/transfertest"
)

// With the API of FTS, a challenge that is killed takes over the copies that the service goes on to
// make: each copy has one final line, and nothing is left at the real servers.
func TestChallengeByFTS(t *testing.T) {
	tier.Full(t, "holds rates for 40 s")
	t.Parallel()
	x := labtest.Start(t, lab.XRootDConfig{Copies: true})
	y := labtest.Start(t, lab.XRootDConfig{Copies: true, Authority: x})
	conf := coordinator.Config{State: t.TempDir(), Listen: labtest.Address(t), Approve: -1, SiteCA: x.CAFile, JobArea: tpc.Loopback}
	service := transfertest.Start(t, func(ctx context.Context) (transfertest.Coordinator, error) { return coordinator.Open(ctx, conf) })
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte(service.NewToken("challenge", access.MaySubmit)), 0o600))
	text := fmt.Sprintf("name: fts\ninject: {by: fts, url: '%s', auth: {token_file: %s, insecure: true}}\nsites:\n",
		service.Address.URLs[0]+rest.Path, token)
	for name, s := range map[string]*lab.System{"x": x, "y": y} {
		dir := filepath.Join(s.Data, "c") // the servers' user writes there
		require.NoError(t, os.MkdirAll(dir, 0o777))
		require.NoError(t, os.Chmod(dir, 0o777))
		text += fmt.Sprintf("  - {name: %s, url: '%s/c', auth: {ca_file: %s}}\n", name, s.URLs["https"], x.CAFile)
	}
	text += "links: [{from: x, to: y, rate: 8Mbit/s}, {from: y, to: x, rate: 8Mbit/s}]\n" +
		"profile: [{for: 10s, at: 50%}, {for: 30s, at: 100%}]\nfiles: {size: 1MiB, sources: 2}\n"
	plan, dir := filepath.Join(t.TempDir(), "plan.yaml"), filepath.Join(t.TempDir(), "run")
	require.NoError(t, os.WriteFile(plan, []byte(text), 0o600))
	p := started(t, "challenge", plan, "--out", dir)
	check := foreignAt(t, filepath.Join(y.Data, "c"), "x", 3, 5, 41) // the first two are requested before the kill
	untilHeld(t, dir, 1)
	p.kill(t)
	code, said := started(t, "challenge", "--resume", dir).ended()
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s\n%s", code, p.out.String(), said)
	}
	t.Log(said)
	got := readChallenge(t, dir)
	require.Near(t, "seconds held", got.held, 40, 1)
	done := 0.0
	for _, c := range got.copies {
		if c.Done && c.Verified {
			done += float64(c.Size)
		} else {
			t.Logf("copy %d of %s: %v: %s", c.Request, c.Case, c.Class, c.Reason)
		}
	}
	require.Near(t, "bytes that arrived over the target", done/(2*1e6*35), 1, .2)
	require.Near(t, "bytes of links.jsonl over those that arrived", float64(got.moved)/done, 1, .1)
	check()
	entries, err := os.ReadDir(filepath.Join(x.Data, "c"))
	require.NoError(t, err)
	for _, e := range entries {
		t.Errorf("%s is left at %s", e.Name(), x.Data)
	}
}
