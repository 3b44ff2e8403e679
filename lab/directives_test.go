package lab_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
)

// TestSettingsReachTheServers has servers of each version that are configured as in 2008.
func TestSettingsReachTheServers(t *testing.T) {
	labtest.Need(t, "xrdcp")
	for _, version := range labtest.XRootDs() {
		t.Run(version, func(t *testing.T) {
			s := labtest.Start(t, lab.XRootDConfig{Version: version, Servers: 1, Set: []string{
				"xrd.sched=mint 8 maxt 1024 avlt 128 idle 256", "oss.fdlimit=100 max", "xrootd.async=off", "cms.delay=suspend 1",
				"xrd.timeout=idle 61m",
			}})
			there(t, s, s.URL, "file")
			for name, wants := range map[string][]string{
				"ds1-xrootd": {"xrd.sched mint 8", "oss.fdlimit 100 max", "xrootd.async off", "xrd.timeout idle 61m", "cms.delay suspend 1"},
				"ds1-cmsd":   {"cms.delay suspend 1"}, "redirector-xrootd": {"xrd.sched mint 8"},
			} {
				conf, err := os.ReadFile(filepath.Join(s.Dir, name+".cfg"))
				require.NoError(t, err)
				for _, want := range wants {
					if !strings.Contains("\n"+string(conf), "\n"+want) {
						t.Errorf("%s lacks the line %q:\n%s", name, want, conf)
					}
				}
			}
		})
	}
}

// TestServersThatDoNotTakeASetting say why in their own words.
func TestServersThatDoNotTakeASetting(t *testing.T) {
	labtest.Need(t, "xrootd")
	for set, want := range map[string]string{
		"xrd.sched=mint 8 avtl 128": "invalid sched option 'avtl'", // only a warning, as in 2008
		"xrd.sched=mint eight":      "eight",
	} {
		s, err := lab.XRootDConfig{Set: []string{set}}.Start(t.Context())
		if err == nil {
			t.Errorf("%s: it started: %v", set, s.Stop())
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error does not have the server's words: %v", set, err)
		}
	}
}

func TestSettingsThatAreNone(t *testing.T) {
	for _, c := range []struct {
		set, want string
		servers   int
		auth      string
	}{
		{set: "", want: "write DIRECTIVE=VALUE"}, {set: "xrd.sched", want: "write DIRECTIVE=VALUE"}, {set: "=x", want: "write DIRECTIVE=VALUE"},
		{set: "xrd.sched= \t", want: "write DIRECTIVE=VALUE"}, {set: "xrd.sched=mint 8\nxrd.port 1", want: "one line"},
		{set: "xrd.sched=mint 8\rxrd.port 1", want: "one line"}, {set: "xrd.sched=mint 8\x00", want: "one line"},
		{set: "xrd.sched=mint 8 \\", want: "one line"},
		{set: "xrd.sched=mint $HOME", want: "one line"}, {set: "xrd.sched=# nothing", want: "one line"},
		{set: "xrd.sched=mint\u2028x", want: "one line"},
		{set: "xrd.sched=" + strings.Repeat("x", lab.MaxValue+1), want: "use up to 1000"},
		{set: "xrd.port=1", want: "not one that can be set"}, {set: "xrd.sched mint 8\nxrd.port=1", want: "not one that can be set"},
		{set: "all.export=/", want: "not one that can be set"}, {set: "sec.protocol=unix", want: "not one that can be set"},
		{set: "XRD.SCHED=mint 8", want: "not one that can be set"},
		{set: "cms.delay=lookup 1", want: "no cmsd"}, {set: "cms.delay=lookup 1", servers: 1},
		{set: "sec.level=all none", want: "no authentication is configured"}, {set: "sec.level=all none", auth: "unix"},
		{set: "xrd.sched=  mint 8 "},
	} {
		err := lab.Options{Set: []string{"xrootd.async=off", c.set}, Servers: c.servers, Auth: c.auth}.CheckSet()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.set, err, c.want)
		}
	}
}
