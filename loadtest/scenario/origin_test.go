package scenario

import (
	"bytes"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/storage/all"
)

// Mistakes of copies are reported with their place and the correct form.
func TestOriginMistakes(t *testing.T) {
	const (
		davs = "target: davs://b.example.org/f\n"
		root = "target: root://b.example.org//f\n"
		from = "origin: {url: davs://a.example.org/f}\n"
		kind = "workload: {kind: copy}\nfiles: {make: {count: 1}}\n"
	)
	for name, tt := range map[string]struct{ text, want string }{
		"no origin":     {davs + kind, "s.yaml: origin: missing; kind copy copies"},
		"other kind":    {davs + from, "s.yaml:2:10: origin: applies to kind copy only"},
		"other scheme":  {root + kind + from, "origin.url: davs:// and root:// cannot copy"},
		"root push":     {root + kind + "origin: {url: root://a.example.org//f, mode: push}\n", "origin.mode: with root:// the target"},
		"root streams":  {root + kind + "origin: {url: root://a.example.org//f, streams: 4}\n", "origin.streams: the servers of root://"},
		"itself":        {davs + kind + "origin: {url: davs://b.example.org:443/f/}\n", "s.yaml:4:15: origin.url: is the target itself"},
		"no scheme":     {davs + kind + "origin: {url: a.example.org/f}\n", "origin.url: \"a.example.org/f\" has no scheme"},
		"label":         {davs + kind + "origin: {url: davs://a.example.org/f, scitag: 7}\n", "origin.scitag: 7 is out of range"},
		"mode":          {davs + kind + "origin: {url: davs://a.example.org/f, mode: both}\n", "origin.mode: unknown mode \"both\""},
		"built-in":      {"target: built-in\n" + kind + "origin: {url: http://a.example.org/f}\n", "target: built-in makes no third-party"},
		"secret":        {davs + kind + "origin: {url: davs://a.example.org/f, auth: {token: x}}\n", "must not contain secrets"},
		"auth":          {davs + kind + "origin: {url: davs://a.example.org/f, auth: {method: basic}}\n", "origin.auth.method: basic needs user"},
		"ftp":           {"target: ftp://b.example.org/f\n" + kind + "origin: {url: ftp://a.example.org/f}\n", "clients of ftp cannot copy"},
		"link":          {davs + kind + from + "link: {rate: 1Gbit/s}\n", "link: the bytes of third-party"},
		"on":            {davs + kind + from + "on: {batch: local, workers: 2}\n", "on: clients of kind copy run on"},
		"session":       {davs + "workload: {kind: copy, session: shared}\n" + from, "workload.session: "},
		"retries":       {davs + "workload: {kind: copy, retries: 2}\n" + from, "workload.retries: a copy that failed"},
		"chunk":         {davs + "workload: {kind: copy, chunk: 1MiB}\n" + from, "omit chunk"},
		"missing files": {davs + "workload: {kind: copy, size: 1GiB}\n" + from, "workload.size: applies to kinds"},
	} {
		t.Run(name, func(t *testing.T) {
			sc, err := Parse("s.yaml", []byte(tt.text), nil, nil)
			if err == nil {
				_, err = sc.Plan(all.Drivers())
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v\nwant %s", err, tt.want)
			}
		})
	}
}

// A plan with an origin is the same after it was written and read.
func TestOriginInPlan(t *testing.T) {
	sc, err := Parse("s.yaml", []byte("target: davs://b.example.org/f\nworkload: {kind: copy}\nfiles: {make: {count: 2, size: 1GiB}}\n"+
		"origin: {url: davs://a.example.org/f, mode: push, streams: 4, scitag: 129}\n"), nil, nil)
	require.NoError(t, err)
	p, err := sc.Plan(all.Drivers())
	require.NoError(t, err)
	var b, text bytes.Buffer
	require.NoError(t, p.WriteJSON(&b))
	again, err := parsePlan(b.Bytes())
	require.NoError(t, err)
	if *again.Origin != *p.Origin || again.FilesAt() != "davs://a.example.org/f" {
		t.Errorf("%+v, want %+v", again.Origin, p.Origin)
	}
	require.NoError(t, p.WriteText(&text))
	for _, want := range []string{"davs://a.example.org/f, which sends the files, 4 streams, SciTag 129", "1.07 GB each operation"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the description lacks %q:\n%s", want, &text)
		}
	}
}
