package command_test

import (
	"net/url"
	"slices"
	"testing"

	"weir/lab"
	"weir/storage"
	"weir/storage/command"
	"weir/storage/storagetest"
)

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// of is the driver with the kinds that a preset offers.
func of(t *testing.T, preset string) storage.Driver {
	t.Helper()
	d := command.Driver()
	for _, p := range command.Presets() {
		if p.Name == preset {
			lab.Need(t, p.Programs...)
			d.Kinds = slices.DeleteFunc(d.Kinds, func(k storage.Kind) bool { return p.Commands[k] == nil })
			return d
		}
	}
	t.Fatalf("no preset %s", preset)
	return d
}

func TestConformance(t *testing.T) {
	nginx := lab.StartNginx(t, lab.NginxConfig{})
	xrootd := lab.StartXRootD(t, lab.XRootDConfig{})
	gridftp := lab.StartGridFTP(t, lab.GridFTPConfig{})
	always := []storagetest.Lack{storagetest.SeveralRanges, storagetest.KeptSessions, storagetest.EarlyProgress}
	for _, c := range []struct {
		preset, name, url string
		lacks             []storagetest.Lack
		without           []storage.Kind
	}{
		{"curl", "nginx", nginx.URL, nil, nil},
		{"curl", "xrootd", xrootd.URLs["http"], nil, nil},
		{"xrdcp", "xrootd", xrootd.URL, nil, nil},
		{"globus-url-copy", "gridftp", gridftp.URL, []storagetest.Lack{storagetest.Ranges}, nil},
		{"gfal-copy", "nginx", nginx.URL, []storagetest.Lack{storagetest.Ranges}, []storage.Kind{storage.List, storage.Checksum}},
		{"gfal-copy", "xrootd", xrootd.URL, []storagetest.Lack{storagetest.Ranges}, nil},
		{"gfal-copy", "gridftp", gridftp.URL, []storagetest.Lack{storagetest.Ranges}, nil},
	} {
		t.Run(c.preset+" "+c.name, func(t *testing.T) {
			d := of(t, c.preset)
			d.Kinds = slices.DeleteFunc(d.Kinds, func(k storage.Kind) bool { return slices.Contains(c.without, k) })
			d.Schemes = nil
			target := storage.Target{URL: parse(t, c.url), Command: []string{c.preset}}
			storagetest.Run(t, d, target, storagetest.Options{
				Lacks: append(c.lacks, always...), Clients: 4, Largest: 2 << 20, Few: true, Network: true,
			})
		})
	}
}
