package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A Kubernetes comes up with a node that is ready, and leaves neither control groups nor settings of this machine.
func TestKubernetes(t *testing.T) {
	FullTier(t, "Kubernetes")
	settings := func() string {
		all, err := os.ReadFile("/proc/sys/vm/overcommit_memory")
		more, failed := os.ReadFile("/proc/sys/kernel/panic")
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		return string(all) + string(more)
	}
	Need(t, KubernetesConfig{}.needs()...)
	before, begin := settings(), time.Now()
	s, err := KubernetesConfig{}.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("up after %.1f s", time.Since(begin).Seconds())
	s.Use(t)
	said := run(t, nil, "kubectl", "get", "nodes", "-o", "jsonpath={.items[*].metadata.name} {.items[*].status.nodeInfo.kubeletVersion}")
	if !strings.HasPrefix(said, "127.0.0.1 v1.") {
		t.Errorf("the nodes are %q", said)
	}
	if groups, _ := filepath.Glob(cgroups + "/*/" + s.groups + "-*"); len(groups) == 0 {
		t.Error("the node has no control groups")
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if groups, _ := filepath.Glob(cgroups + "/*/" + s.groups + "-*"); len(groups) > 0 {
		t.Errorf("left: %v", groups)
	}
	if after := settings(); after != before {
		t.Errorf("the machine's settings were %q, now they are %q", before, after)
	}
}
