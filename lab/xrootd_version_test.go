package lab_test

import (
	"strings"
	"testing"

	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
)

// Later versions of XRootD run together with the version of this system, with each authentication
// method, and as a cluster.
func TestXRootDVersions(t *testing.T) {
	tier.Full(t, "further versions of XRootD")
	labtest.Need(t, "xrdfs")
	for _, version := range lab.XRootDVersions() {
		for _, auth := range lab.XRootDAuths() {
			t.Run(version+"/"+auth, func(t *testing.T) {
				s := labtest.Start(t, lab.XRootDConfig{Version: version, Auth: auth})
				said := run(t, s.Env, "xrdfs", strings.TrimSuffix(s.URL, "//data"), "query", "config", "version")
				if !strings.HasPrefix(said, "v"+version) {
					t.Errorf("it says that it is %q", said)
				}
			})
		}
		t.Run(version+"/cluster", func(t *testing.T) {
			s := labtest.Start(t, lab.XRootDConfig{Version: version, Servers: 2, Config: lab.Config{TLS: true}, Copies: true})
			if said := run(t, s.Env, "xrdfs", strings.TrimSuffix(s.URL, "//data"), "locate", "*"); strings.Count(said, "Server") != 2 {
				t.Errorf("its servers are %q", said)
			}
		})
	}
}
