package lab

import (
	"strings"
	"testing"
)

// Later XRootDs run beside this system's, with each authentication, and as a cluster.
func TestXRootDVersions(t *testing.T) {
	FullTier(t, "further versions of XRootD")
	Need(t, "xrdfs")
	for _, version := range XRootDVersions() {
		for _, auth := range XRootDAuths() {
			t.Run(version+"/"+auth, func(t *testing.T) {
				s := StartXRootD(t, XRootDConfig{Version: version, Auth: auth})
				said := run(t, s.Env, "xrdfs", strings.TrimSuffix(s.URL, "//data"), "query", "config", "version")
				if !strings.HasPrefix(said, "v"+version) {
					t.Errorf("it says that it is %q", said)
				}
			})
		}
		t.Run(version+"/cluster", func(t *testing.T) {
			s := StartXRootD(t, XRootDConfig{Version: version, Servers: 2, Config: Config{TLS: true}, Copies: true})
			if said := run(t, s.Env, "xrdfs", strings.TrimSuffix(s.URL, "//data"), "locate", "*"); strings.Count(said, "Server") != 2 {
				t.Errorf("its servers are %q", said)
			}
		})
	}
}
