package challenge

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
)

// withFile parses a challenge of two sites beside a file named x.json.
func withFile(t *testing.T, content, text string) (*Challenge, error) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.json"), []byte(content), 0o600))
	return Parse(filepath.Join(dir, "c.yaml"), []byte(text), nil, nil)
}

// TestDistances reads the forms that Rucio's REST API has: GET /export, and GET
// /rses/SOURCE/distances/DEST.
func TestDistances(t *testing.T) {
	text := strings.Replace(whole, "name: A,", "name: A, rse: A_DISK,", 1) + "distances: x.json\n"
	for _, c := range []struct {
		content string
		linked  bool
	}{
		{`{"rses": {}, "distances": {"A_DISK": {"B": {"src_rse_id": "1", "dest_rse_id": "2", "distance": 1, "ranking": 1}}}}`, true},
		{`{"A_DISK": {"B": {"distance": 0}}}`, true},
		{`[{"src_rse_id": "1", "dest_rse_id": "2", "distance": 3, "src_rse": "A_DISK", "dest_rse": "B"}]`, true},
		{`{"distances": {"B": {"A_DISK": {"distance": 1}}}}`, false},
		{`{"distances": {"A_DISK": {"B": {"distance": null}}}}`, false},
		{`[]`, false},
	} {
		_, err := withFile(t, c.content, text)
		if linked := err == nil; linked != c.linked {
			t.Errorf("%s: %v", c.content, err)
		}
		if err != nil && !strings.Contains(err.Error(), "c.yaml:4:16: links.0.from: A to B: Rucio has no distance from A_DISK to B") {
			t.Error(err)
		}
	}
	for _, content := range []string{"", "x", `[{"distance": 1}]`, `[1]`, `{"distances": 1}`} {
		if _, err := withFile(t, content, text); err == nil || !strings.Contains(err.Error(), "distances: ") {
			t.Errorf("%s: %v", content, err)
		}
	}
}

// TestLimits reads the answers of FTS to GET /config/links and /config/se.
func TestLimits(t *testing.T) {
	text := strings.Replace(whole, "100Mbit/s", "100Mbit/s, in_flight: 60", 1) + "limits: [x.json]\n"
	for _, c := range []struct {
		content string
		want    int
	}{
		{`[{"source": "https://a.example.org", "destination": "https://b.example.org", "symbolicname": "a-b", "min_active": 2, "max_active": 30}]`, 30},
		{`[{"source": "*", "destination": "*", "max_active": 20}, {"source": "https://a.example.org", "destination": "*", "max_active": 40}]`, 40},
		{`[{"source": "https://c.example.org", "destination": "*", "max_active": 10}]`, 60},
		{`[{"source": "*", "destination": "*", "max_active": 200}]`, 60},
		{`{"*": {"se_info": {"inbound_max_active": 50, "outbound_max_active": 55}}}`, 50},
		{`{"*": {"se_info": {"inbound_max_active": 50}}, "https://b.example.org": {"se_info": {"inbound_max_active": 5, "site": "B"}, "operations": {}}}`, 5},
		{`{"https://a.example.org": {"se_info": {"inbound_max_active": 5, "outbound_max_active": null}}}`, 60},
	} {
		got, err := withFile(t, c.content, text)
		require.NoError(t, err)
		if got.Links[0].InFlight != c.want {
			t.Errorf("%s: %d copies at once", c.content, got.Links[0].InFlight)
		}
	}
	for _, content := range []string{"", "x", `{"links": {}}`, `[1]`} {
		if _, err := withFile(t, content, text); err == nil || !strings.Contains(err.Error(), "limits.0: ") {
			t.Errorf("%s: %v", content, err)
		}
	}
}
