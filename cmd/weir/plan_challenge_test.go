package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
)

// TestPlanOfChallenge checks that weir plan recognizes a data challenge, with its --set and --json,
// and that mistakes are errors of use.
func TestPlanOfChallenge(t *testing.T) {
	const file = "../../scenarios/challenge/dc27-rehearsal.yaml"
	code, text := weir(t, "plan", file)
	if code != exitFine || !strings.Contains(text, "dc27-rehearsal") || !strings.Contains(text, "CERN to DESY") {
		t.Errorf("%d: %s", code, text)
	}
	code, text = weir(t, "plan", file, "--json", "--set", "links.0.rate=20MB/s")
	var got struct {
		Challenge struct{ Links []struct{ Rate string } }
		Estimate  struct {
			Links []struct {
				Bytes float64 `json:"target_bytes_per_second"`
			}
		}
	}
	text, _, _ = strings.Cut(text, "\nwarning: ")
	require.NoError(t, json.Unmarshal([]byte(text[strings.Index(text, "{"):]), &got))
	if code != exitFine || got.Challenge.Links[0].Rate != "160Mbit/s" || got.Estimate.Links[0].Bytes != 20e6 {
		t.Errorf("%d: %+v", code, got)
	}
	for _, args := range [][]string{
		{file, "--set", "links.0.rate=500MB/s"}, {file, "--target", "http://localhost/"}, {file, "--clients", "3"}, {file, "--var", "A=1"},
	} {
		if code, text := weir(t, append([]string{"plan"}, args...)...); code != exitUsage {
			t.Errorf("%v: %d: %s", args, code, text)
		}
	}
}

// TestPlanOfChallengeWithExpiredToken checks that weir plan refuses credentials that have ended.
func TestPlanOfChallengeWithExpiredToken(t *testing.T) {
	dir := t.TempDir()
	const ended = "eyJhbGciOiJub25lIn0.eyJleHAiOjEwMDB9.eA" // {"exp":1000}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cern.token"), []byte(ended), 0o600))
	text := require.File(t, "../../scenarios/challenge/dc27-rehearsal.yaml")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "c.yaml"), text, 0o600))
	code, said := weir(t, "plan", filepath.Join(dir, "c.yaml"))
	if code != exitUsage || !strings.Contains(said, "1970-01-01 00:16:40") {
		t.Errorf("%d: %s", code, said)
	}
}

// TestSchemaOfChallenge checks that weir schema prints either schema.
func TestSchemaOfChallenge(t *testing.T) {
	for flag, title := range map[string]string{"--challenge": "weir challenge", "--challenge=false": "weir scenario"} {
		_, text := weir(t, "schema", flag)
		var got struct{ Title string }
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		if got.Title != title {
			t.Errorf("%s prints %q", flag, got.Title)
		}
	}
}
