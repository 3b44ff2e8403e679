package campaign

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
	"weir/loadtest/results/resultstest/keys"
)

func matrix() *Campaign {
	return &Campaign{
		Version: Version, Name: "logins", Repeat: 1, Seed: 7,
		Factors: []Factor{{Key: "auth.method", Levels: []string{"none", "krb5"}}},
		Runs: []Run{
			{Number: 1, Block: 1, Variant: "b", Levels: map[string]string{"auth.method": "krb5"}, Dir: "001-b", Scenario: "auth.method=krb5"},
			{Number: 2, Block: 1, Variant: "a", Levels: map[string]string{"auth.method": "none"}, Dir: "002-a"},
		},
	}
}

func TestDocumentedKeys(t *testing.T) {
	keys.Compare(t, "../../../docs/results.md", "campaign.json", Campaign{}, Factor{}, Run{})
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	dir := t.TempDir()
	if Is(dir) {
		t.Error("an empty folder is taken for a campaign")
	}
	if _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("empty folder: %v", err)
	}
	require.NoError(t, Write(dir, matrix()))
	got, err := Read(dir)
	if err != nil || !Is(dir) {
		t.Fatal(Is(dir), err)
	}
	if diff := cmp.Diff(matrix(), got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, got.Variants()); diff != "" {
		t.Error("the variant with all first levels comes first:", diff)
	}
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	for want, spoil := range map[string]func(*Campaign){
		"newer weir":              func(c *Campaign) { c.Version = 2 },
		"no key":                  func(c *Campaign) { c.Factors[0].Key = "" },
		"level twice":             func(c *Campaign) { c.Factors[0].Levels[1] = "none" },
		"there twice":             func(c *Campaign) { c.Factors = append(c.Factors, c.Factors[0]) },
		"run 1: dir":              func(c *Campaign) { c.Runs[0].Dir = "../x" },
		"runs 1 and 2 share":      func(c *Campaign) { c.Runs[0].Dir = "./002-a" },
		"block 0 must be":         func(c *Campaign) { c.Runs[1].Block = 0 },
		"variant is missing":      func(c *Campaign) { c.Runs[1].Variant = "" },
		`run 2: level "x" of fac`: func(c *Campaign) { c.Runs[1].Levels["auth.method"] = "x" },
		"2 levels for 1 factors":  func(c *Campaign) { c.Runs[1].Levels["link"] = "x" },
	} {
		c := matrix()
		spoil(c)
		b, err := json.Marshal(c)
		require.NoError(t, err)
		if _, err := Parse(b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, File), 0o700))
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "regular") {
		t.Error(err)
	}
	if err := Write(t.TempDir(), &Campaign{Runs: []Run{{}}}); err == nil {
		t.Error("a campaign that could not be read again is written")
	}
}

// FuzzParse parses damaged files: Parse returns an error or a consistent campaign.
func FuzzParse(f *testing.F) {
	b, err := json.Marshal(matrix())
	require.NoError(f, err)
	f.Add(b)
	f.Add([]byte(`{"version":1}`))
	f.Add([]byte(`{"version":1,"runs":[{"dir":"a","block":1,"number":1,"variant":"a"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Parse(b)
		if err != nil {
			return
		}
		for _, r := range c.Runs {
			if !filepath.IsLocal(r.Dir) || r.Variant == "" || r.Block < 1 {
				t.Errorf("%+v", r)
			}
		}
		if len(c.Variants()) > len(c.Runs) {
			t.Error("more variants than runs")
		}
	})
}
