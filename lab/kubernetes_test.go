package lab_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
)

// A Kubernetes comes up with a node that is ready, and leaves neither control groups nor settings of this machine.
func TestKubernetes(t *testing.T) {
	tier.Full(t, "Kubernetes")
	settings := func() string {
		all, err := os.ReadFile("/proc/sys/vm/overcommit_memory")
		more, failed := os.ReadFile("/proc/sys/kernel/panic")
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		return string(all) + string(more)
	}
	labtest.Need(t, lab.KubernetesConfig{}.Needs()...)
	before, begin := settings(), time.Now()
	s, err := lab.KubernetesConfig{}.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("up after %.1f s", time.Since(begin).Seconds())
	labtest.Use(t, s)
	said := run(t, nil, "kubectl", "get", "nodes", "-o", "jsonpath={.items[*].metadata.name} {.items[*].status.nodeInfo.kubeletVersion}")
	if !strings.HasPrefix(said, "127.0.0.1 v1.") {
		t.Errorf("the nodes are %q", said)
	}
	if groups, _ := filepath.Glob(lab.CGroups + "/*/" + s.Groups() + "-*"); len(groups) == 0 {
		t.Error("the node has no control groups")
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if groups, _ := filepath.Glob(lab.CGroups + "/*/" + s.Groups() + "-*"); len(groups) > 0 {
		t.Errorf("left: %v", groups)
	}
	if after := settings(); after != before {
		t.Errorf("the machine's settings were %q, now they are %q", before, after)
	}
}
