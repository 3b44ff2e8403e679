package command_test

import (
	"net/url"
	"slices"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/command"
	"weir/storage/storagetest"
)

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return u
}

// of returns the driver with the kinds that a preset supports.
func of(t *testing.T, preset string) storage.Driver {
	t.Helper()
	d := command.Driver()
	for _, p := range command.Presets() {
		if p.Name == preset {
			labtest.Need(t, p.Programs...)
			d.Kinds = slices.DeleteFunc(d.Kinds, func(k storage.Kind) bool { return p.Commands[k] == nil })
			return d
		}
	}
	t.Fatalf("no preset %s", preset)
	return d
}

func TestConformance(t *testing.T) {
	// xrdcp queries name servers; a name server that does not respond costs 5 s each time.
	t.Setenv("RES_OPTIONS", "timeout:1 attempts:1")
	nginx := labtest.Start(t, lab.NginxConfig{})
	xrootd := labtest.Start(t, lab.XRootDConfig{})
	gridftp := labtest.Start(t, lab.GridFTPConfig{})
	always := []storagetest.Lack{storagetest.SeveralRanges, storagetest.KeptSessions, storagetest.EarlyProgress}
	for _, c := range []struct {
		preset, name, url string
		lacks             []storagetest.Lack
	}{
		{"curl", "nginx", nginx.URL, nil},
		{"curl", "xrootd", xrootd.URLs["http"], nil},
		// These two clients count discarded payload only by the kernel's counts of their writes,
		// which include some bytes that are not payload.
		{"xrdcp", "xrootd", xrootd.URL, []storagetest.Lack{storagetest.Ranges, storagetest.ExpectedSize}},
		{"globus-url-copy", "gridftp", gridftp.URL, []storagetest.Lack{storagetest.Ranges, storagetest.ExpectedSize}},
		{"gfal-copy", "xrootd http", xrootd.URLs["http"], []storagetest.Lack{storagetest.Ranges}},
		{"gfal-copy", "xrootd", xrootd.URL, []storagetest.Lack{storagetest.Ranges}},
		{"gfal-copy", "gridftp", gridftp.URL, []storagetest.Lack{storagetest.Ranges}},
	} {
		t.Run(c.preset+" "+c.name, func(t *testing.T) {
			if c.preset == "gfal-copy" { // a Python program: 25 s of CPU time each
				tier.Full(t, "gfal-copy in the suite")
			}
			d := of(t, c.preset)
			d.Schemes = nil
			target := storage.Target{URL: parse(t, c.url), Command: []string{c.preset}}
			storagetest.Run(t, d, target, storagetest.Options{
				Lacks: append(c.lacks, always...), Clients: 4, Largest: 2 << 20, Few: true, Network: true,
				Bound: 2 * time.Minute, // they use name servers, which may be slow with many requests
			})
		})
	}
}
