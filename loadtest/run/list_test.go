package run

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/analysis/campaign"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
)

// TestList lists runs with and without findings, a search, a run that cannot be read and a campaign,
// writes nothing, and leaves out links and other folders.
func TestList(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, change func(*resultstest.Service)) {
		s := resultstest.Typical()
		s.Clients, s.Duration = []int{1, 4}, 2
		change(&s)
		require.NoError(t, s.Write(filepath.Join(dir, name)))
	}
	write("a", func(*resultstest.Service) {})
	write("killed", func(s *resultstest.Service) { s.Unfinished = true })
	write("search", func(s *resultstest.Service) { s.Search = true })
	write("damaged", func(*resultstest.Service) {})
	write("campaign/001-a", func(*resultstest.Service) {})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "damaged", results.PlanFile), []byte("{"), 0o600))
	require.NoError(t, campaign.Write(filepath.Join(dir, "campaign"), &campaign.Campaign{Name: "c", Repeat: 2, Runs: []campaign.Run{
		{Number: 1, Block: 1, Variant: "a", Dir: "001-a"}, {Number: 2, Block: 2, Variant: "a", Dir: "002-a"}}}))
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "latest")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "other"), 0o700))
	got, err := List(dir)
	require.NoError(t, err)
	byName := map[string]Listed{}
	for _, l := range got {
		byName[filepath.Base(l.Dir)] = l
	}
	if len(got) != 5 || len(byName) != 5 {
		t.Fatalf("%+v", got)
	}
	for name, kind := range map[string]string{"a": KindRun, "killed": KindRun, "search": KindSearch, "campaign": KindCampaign} {
		l := byName[name]
		if l.Kind != kind || l.Target != "http://store.example.org:8080/data" || !l.Start.Equal(resultstest.Start()) || l.Headline == "" ||
			l.Error != "" || kind != KindCampaign && l.Status == "" {
			t.Errorf("%s: %+v", name, l)
		}
	}
	if l := byName["damaged"]; l.Error == "" {
		t.Errorf("%+v", l)
	}
	if _, err := os.Stat(filepath.Join(dir, "a", results.FindingsFile)); err == nil {
		t.Error("findings were written")
	}
	var b bytes.Buffer
	require.NoError(t, WriteListed(&b, got, 80))
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "    ") && len(line) > 81 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	for of, want := range map[string]string{"a": "a", "campaign": "001-a"} {
		if all, err := List(filepath.Join(dir, of)); err != nil || len(all) != 1 || filepath.Base(all[0].Dir) != want {
			t.Errorf("%s: %+v, %v", of, all, err)
		}
	}
	if _, err := List(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a folder that does not exist is listed")
	}
}
