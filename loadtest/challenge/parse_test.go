package challenge

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/document"
	"weir/internal/require"
	"weir/monitor"
)

// two is a challenge of two sites without links, profile and files.
const two = `sites:
  - {name: A, url: "https://a.example.org/data"}
  - {name: B, url: "https://b.example.org/data", root: "root://b.example.org//data"}
`

// whole is a valid challenge.
const whole = two + "links: [{from: A, to: B, rate: 100Mbit/s}]\nprofile: [{for: 10m, at: 100%}]\n"

func parse(t *testing.T, text string) (*Challenge, error) {
	t.Helper()
	return Parse(filepath.Join(t.TempDir(), "c.yaml"), []byte(text), nil, nil)
}

func valid(t *testing.T, text string) *Challenge {
	t.Helper()
	c, err := parse(t, text)
	require.NoError(t, err)
	return c
}

// mistakes returns the mistakes of a challenge in the folder dir.
func mistakes(t *testing.T, dir, text string) document.Mistakes {
	t.Helper()
	_, err := Parse(filepath.Join(dir, "c.yaml"), []byte(text), nil, nil)
	var all document.Mistakes
	if err == nil || !errors.As(err, &all) {
		t.Fatalf("Parse returned %v, and mistakes were expected in\n%s", err, text)
	}
	return all
}

func TestDefaults(t *testing.T) {
	c := valid(t, whole)
	if c.Name != "challenge" || c.Inject.By != Direct || c.Timeout.String() != "1h" || !c.Verify || c.Files.Size.Fixed != 1<<30 ||
		c.Files.Sources != 10 || c.Seed != 1 || c.Files.Linger != 0 {
		t.Errorf("other defaults: %+v", c)
	}
	if l := c.Links[0]; l.Protocol != WebDAV || l.Mode != Pull || l.InFlight != 100 || l.Streams != 0 || l.SciTag != 0 {
		t.Errorf("other defaults of a link: %+v", l)
	}
	if c.Sites[0].RSE != "A" || len(c.Hosts) != 1 || c.Hosts[0].Name != "localhost" || c.Hosts[0].Role != monitor.RoleClient {
		t.Errorf("site %+v, hosts %+v", c.Sites[0], c.Hosts)
	}
}

func TestVariablesAndSets(t *testing.T) {
	text := "variables: {RATE: null}\n" + strings.Replace(whole, "100Mbit/s", "\"${RATE}\"", 1)
	c, err := Parse("c.yaml", []byte(text), map[string]string{"RATE": "25MB/s"}, []string{"files.size=5MB", "sites.0.space=1TB"})
	require.NoError(t, err)
	if c.Links[0].Rate != 200e6 || c.Files.Size.Fixed != 5e6 || c.Sites[0].Space != 1e12 {
		t.Errorf("%+v", c)
	}
	_, err = Parse("c.yaml", []byte(whole), map[string]string{"RAET": "1"}, []string{"files.sizes=1MB"})
	var all document.Mistakes
	if !errors.As(err, &all) || len(all) != 2 {
		t.Errorf("%v", err)
	}
}

func TestPathsAreRelativeToTheFile(t *testing.T) {
	c, err := Parse("dir/c.yaml", []byte(strings.Replace(whole, "/data\"}", "/data\", auth: {method: token, token_file: a.token}}", 1)), nil,
		[]string{"inject.auth.token_file=b.token"})
	require.NoError(t, err)
	if c.Sites[0].Auth.TokenFile != "dir/a.token" || c.Inject.Auth.TokenFile != "b.token" {
		t.Errorf("%s, %s", c.Sites[0].Auth.TokenFile, c.Inject.Auth.TokenFile)
	}
	require.NoError(t, c.Anywhere())
	if !filepath.IsAbs(c.Sites[0].Auth.TokenFile) {
		t.Errorf("%s is not absolute", c.Sites[0].Auth.TokenFile)
	}
}

// mark stands before the place of the mistake in the texts of TestMistakes.
const mark = "@@"

// place removes the mark from text and returns its line and column, 0 without a mark.
func place(text string) (rest string, line, column int) {
	before, after, found := strings.Cut(text, mark)
	if found {
		line, column = strings.Count(before, "\n")+1, len(before)-strings.LastIndex(before, "\n")
	}
	return before + after, line, column
}

// TestMistakes checks the place of each mistake, and that its message has the remedy.
func TestMistakes(t *testing.T) {
	const links, profile = "links: [{from: A, to: B, rate: 100Mbit/s}]\n", "profile: [{for: 10m, at: 100%}]\n"
	link := func(rest string) string { return two + "links: [{from: A, to: B" + rest + "}]\n" + profile }
	swap := func(old, with string) string { return strings.Replace(whole, old, with, 1) }
	for _, c := range []struct{ text, has string }{
		{two + "links: [{from: A, to: @@C, rate: 1Mbit/s}]\n" + profile, "use one of A, B"},
		{two + "links: [{from: A, to: @@A, rate: 1Mbit/s}]\n" + profile, "omit it"},
		{two + "links: [{from: A, to: B, rate: 1Mbit/s}, {@@from: A, to: B, rate: 2Mbit/s}]\n" + profile, "keep one"},
		{two + "links: [{@@from: A, to: B}]\n" + profile, "write a rate"},
		{link(", rate: @@0"), "write a rate"},
		{link(", rate: @@100"), "no unit"},
		{link(", rate: @@100Mbps"), "did you mean 100Mbit/s"},
		{link(", rate: @@-1Mbit/s"), "negative"},
		{link(", rate: 1Mbit/s, scitag: @@64"), "65 to 65535"},
		{link(", rate: 1Mbit/s, scitag: @@65536"), "65 to 65535"},
		{link(", rate: 1Mbit/s, in_flight: @@0"), "above 0"},
		{link(", rate: 1Mbit/s, protocol: @@root"), "add root: root://"},
		{link(", rate: 1Mbit/s, protocol: @@gsiftp"), "use one of davs, root"},
		{two + profile, "name links"},
		{two + "links: [{@@from: \"*\", to: B, scitag: 70}]\n" + profile, "matches no link"},
		{two + "links: [{from: A, to: B, rate: 1Mbit/s}, {from: A, to: \"*\", rate: @@1Mbit/s}]\n" + profile, "write a matrix"},
		{two + links, "write stages"},
		{two + links + "profile: @@[]\n", "write stages"},
		{two + links + "profile: [{for: @@0s, at: 100%}]\n", "more than 0"},
		{two + links + "profile: @@[{for: 1m, at: 0%}]\n", "all stages are pauses"},
		{two + links + "profile: [{for: 1m, at: @@-1%}]\n", "0% for a pause"},
		{two + links + "profile: [{for: 1m, at: @@1}]\n", "as in 100%"},
		{two + links + "profile: [{for: 1m, at: @@100}]\n", "as in 100%"},
		{two + links + "profile: [{@@for: 1m}]\n", "share of the target rates"},
		{whole + "inject: {@@by: fts}\n", "https://fts3"},
		{whole + "inject: {by: direct, url: @@https://fts}\n", "omit url"},
		{whole + "inject: {@@by: rucio, url: https://r, account: a}\n", "name a scope"},
		{whole + "inject: {@@by: rucio, url: https://r, scope: a}\n", "name the account"},
		{whole + "inject: {by: fts, url: https://r, scope: @@a}\n", "omit it"},
		{whole + "files: {size: @@0}\n", "at least one byte"},
		{whole + "files: {sources: @@0}\n", "1 to 100000"},
		{whole + "timeout: @@0s\n", "more than 0"},
		{whole + "name: @@a/b\n", "letters"},
		{whole + "@@token: abc\n", "token_file"},
		{"sites: @@[{name: A, url: https://a/}]\n" + profile, "2 to 1000"},
		{swap("name: B", "name: @@A"), "is repeated"},
		{swap("\"https://b.example.org/data", "@@\"https://a.example.org/data/"), "folder of its own"},
		{swap("\"https://b.example.org/data", "@@\"davs://A.example.org:443/x/../data"), "folder of its own"},
		{swap("\"https://b.example.org", "@@\"gsiftp://b.example.org"), "use one of davs"},
		{swap("\"https://b.example.org", "@@\"https://u:p@b.example.org"), "omit the part before"},
		{swap("\"https://b.example.org/data", "@@\"https://b.example.org/data?authz=x"), "use auth for credentials"},
		{swap("\"root://b", "@@\"https://b"), "use one of root"},
		{swap("\"https://a.example.org/data\"", "@@\"http://a.example.org/data\", auth: {method: token, token_file: x}"), "use https"},
	} {
		text, line, column := place(c.text)
		all := mistakes(t, t.TempDir(), text)
		found := slices.ContainsFunc(all, func(m *document.Mistake) bool {
			return strings.Contains(m.Text, c.has) && m.Line == line && m.Column == column
		})
		if !found {
			t.Errorf("no mistake at %d:%d has %q:\n%s\n%v", line, column, c.has, text, all)
		}
	}
}

func TestAllMistakesAtOnce(t *testing.T) {
	all := mistakes(t, t.TempDir(), two+"links: [{from: A, to: C, rate: 1Mbit/s}, {from: A, to: B, rate: 5}]\n"+
		"profile: [{for: 1, at: 50%}]\nfiles: {sizes: 1MB}\n")
	if len(all) != 4 {
		t.Errorf("%d mistakes:\n%v", len(all), all)
	}
}

func TestIs(t *testing.T) {
	for text, want := range map[string]bool{whole: true, "target: http://a/": false, "": false, "[1]": false, "a: [": false} {
		if Is([]byte(text)) != want {
			t.Errorf("Is(%q) is not %v", text, want)
		}
	}
}
