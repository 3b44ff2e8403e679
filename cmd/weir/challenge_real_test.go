package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/measure"
)

// Between real XRootD servers and weir serve, by http and by root, a challenge holds its rates while
// weir is killed, resumed and interrupted. The sums are those of the bytes that arrived.
func TestChallengeOfRealSites(t *testing.T) {
	tier.Full(t, "three sites, 30 s stages")
	t.Parallel()
	const byRoot = "ofs.tpc pgm /usr/bin/xrdcp --server\n"
	x := labtest.Start(t, lab.XRootDConfig{Copies: true, Extra: byRoot})
	y := labtest.Start(t, lab.XRootDConfig{Copies: true, Authority: x, Extra: byRoot})
	g := newGridSites(t, "[]")
	plan := fmt.Sprintf("name: real\nsites:\n  - {name: x, url: '%s', root: '%s'}\n  - {name: y, url: '%s', root: '%s'}\n"+
		"  - {name: s, url: '%s'}\n", x.URLs["http"], x.URLs["root"], y.URLs["http"], y.URLs["root"], g.servers[0].URL())
	plan += `links:
  - {from: x, to: y, rate: 16Mbit/s}
  - {from: y, to: x, rate: 16Mbit/s, protocol: root}
  - {from: x, to: s, rate: 8Mbit/s}
  - {from: s, to: x, rate: 8Mbit/s}
  - {from: y, to: s, rate: 8Mbit/s, mode: push}
  - {from: s, to: y, rate: 8Mbit/s, mode: push}
profile: [{for: 30s, at: 50%}, {for: 30s, at: 100%}]
files: {size: 1MiB, sources: 3, linger: 2s}
`
	require.NoError(t, os.WriteFile(g.plan, []byte(plan), 0o600))
	dir := filepath.Join(t.TempDir(), "run")
	killed := started(t, "challenge", g.plan, "--out", dir, "--quiet")
	untilHeld(t, dir, 1)
	killed.kill(t)
	interrupted := started(t, "challenge", "--resume", dir)
	untilHeld(t, dir, 2)
	interrupted.send(t, os.Interrupt)
	if code, said := interrupted.ended(); code != exitInterrupt {
		t.Fatalf("exit code %d, want %d\n%s", code, exitInterrupt, said)
	}
	code, said := started(t, "challenge", "--resume", dir, "--quiet").ended()
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	t.Log(said)
	got := readChallenge(t, dir)
	require.Near(t, "seconds held", got.held, 60, 1)
	if got.end == nil || got.end.Outcome != measure.Complete {
		t.Errorf("the end is %+v", got.end)
	}
	links, expected := map[string]float64{}, map[string]float64{"x to y": 2, "y to x": 2, "x to s": 1, "s to x": 1, "y to s": 1, "s to y": 1}
	for _, c := range got.copies {
		switch {
		case c.Done && !c.Verified:
			t.Errorf("copy %d of %s was not verified", c.Request, c.Case)
		case c.Done:
			links[c.Case] += float64(c.Size)
		case c.Class.Failure() && !strings.Contains(c.Reason, "process"): // of the kill
			t.Logf("copy %d of %s: %v: %s", c.Request, c.Case, c.Class, c.Reason)
		}
	}
	for link, rate := range expected { // 8 Mbit/s, at 50% and at 100% for half a minute each
		require.Near(t, link+": bytes that arrived over the target", links[link]/(rate*1e6*45), 1, .1)
	}
	done := 0.0
	for _, n := range links {
		done += n
	}
	require.Near(t, "bytes of links.jsonl over those that arrived", float64(got.moved)/done, 1, .05)
	g.isClean(t)
	for _, data := range []string{x.Data, y.Data} {
		entries, err := os.ReadDir(data)
		require.NoError(t, err)
		for _, e := range entries {
			t.Errorf("%s is left in %s", e.Name(), data)
		}
	}
}
