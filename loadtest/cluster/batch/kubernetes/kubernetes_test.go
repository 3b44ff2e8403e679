package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/internal/tier"
	"weir/internal/unit"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/cluster/batch"
	"weir/loadtest/cluster/batch/batchtest"
	"weir/loadtest/scenario"
)

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) < 2 || os.Args[1] != "pod" && os.Args[len(os.Args)-1] != "eat":
		batchtest.Main(m, New())
	case os.Args[1] != "pod":
		var all [][]byte
		for len(all) < 1<<20 {
			all = append(all, bytes.Repeat([]byte{1}, 1<<20)) // until there is no memory
		}
	}
	status, err := Pod(os.Args[2:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(status)
}

// place returns the lab's cluster for workers that are this test program, which needs this
// machine's libraries, and leave their traces in this machine's temporary folder.
func place(t *testing.T, change func(*scenario.Kubernetes), more ...string) batchtest.Place {
	t.Helper()
	on := scenario.Kubernetes{Image: lab.KubernetesImage, Deadline: unit.Duration(time.Hour)}
	if change != nil {
		change(&on)
	}
	text, err := json.Marshal(on)
	if err != nil {
		t.Fatal(err)
	}
	var volumes, mounts []string
	for i, path := range []string{os.TempDir(), "/lib", "/lib64", "/usr"} {
		volumes = append(volumes, fmt.Sprintf("{name: v%d, hostPath: {path: %s}}", i, path))
		mounts = append(mounts, fmt.Sprintf("{name: v%d, mountPath: %s, readOnly: %v}", i, path, i > 0))
	}
	return batchtest.Place{System: New(), Options: append([]string{
		string(text), "hostNetwork: true", "securityContext: {runAsNonRoot: false, runAsUser: 0}",
		"volumes: [" + strings.Join(volumes, ", ") + "]", "containers: [{volumeMounts: [" + strings.Join(mounts, ", ") + "]}]",
	}, more...)}
}

func TestKubernetes(t *testing.T) {
	tier.Full(t, "Kubernetes")
	cluster := labtest.Start(t, lab.KubernetesConfig{})
	labtest.Use(t, cluster)
	t.Run("Suite", func(t *testing.T) { batchtest.Run(t, place(t, nil)) })
	nothingLeft(t)
	batchtest.Await(t, "the node has no folders of pods", func() bool {
		all, _ := os.ReadDir(filepath.Join(cluster.Dir, "node/kubelet/pods"))
		return len(all) == 0
	})
	t.Run("Reasons", reasons)
	t.Run("Ends", ends)
	t.Run("Quota", quota)
	t.Run("Rights", rights)
	t.Run("Wrong", wrong)
	nothingLeft(t)
}

// nothingLeft fails t if anything of a submission is in the cluster.
func nothingLeft(t *testing.T) {
	t.Helper()
	if said := kubectl(t, "get", "jobs,pods,secrets", "--all-namespaces", "--selector="+label, "--output=name"); said != "" {
		t.Errorf("left in the cluster: %s", said)
	}
}

// kubectl runs kubectl as the administrator.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	said, err := batch.Run(t.Context(), nil, append([]string{"kubectl"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(said)
}

func submit(t *testing.T, p batchtest.Place, count int, words ...string) (batchtest.Case, batch.Job, *batchtest.Log) {
	t.Helper()
	c := p.Work(t, count, words...)
	j, err := New().Submit(t.Context(), c.Work)
	if err != nil {
		t.Fatal(err)
	}
	log, followed := &batchtest.Log{}, make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	go func() { followed <- j.Follow(ctx, log.Add) }()
	t.Cleanup(func() {
		defer stop()
		if err := errors.Join(j.Remove(context.Background()), <-followed); err != nil {
			t.Error(err)
		}
	})
	return c, j, log
}

// has waits until a worker is in a state for a reason that matches.
func has(t *testing.T, log *batchtest.Log, worker int, state batch.State, reason string) batch.Change {
	t.Helper()
	var found batch.Change
	right := regexp.MustCompile(reason)
	batchtest.Await(t, fmt.Sprintf("worker %d is %s: %s", worker, state, reason), func() bool {
		for _, c := range log.Of(worker) {
			if c.State == state && right.MatchString(c.Reason) {
				found = c
				return true
			}
			if c.State.Over() && !state.Over() {
				t.Fatalf("%+v", log.Of(worker))
			}
		}
		return false
	})
	return found
}

// The reasons why workers do not run are reported.
func reasons(t *testing.T) {
	_, _, tooLarge := submit(t, place(t, func(on *scenario.Kubernetes) { on.Requests = []string{"cpu=100k"} }), 1, "hang")
	_, _, nowhere := submit(t, place(t, func(on *scenario.Kubernetes) {
		on.NodeSelector, on.Tolerations = []string{"disktype=none"}, []string{"dedicated=load:NoSchedule", "other"}
	}), 1, "hang")
	_, _, noImage := submit(t, place(t, func(on *scenario.Kubernetes) { on.Image = "127.0.0.1:1/none:1" }), 1, "hang")
	_, _, noSecret := submit(t, place(t, nil, "volumes: [{name: other, secret: {secretName: none}}]",
		"containers: [{volumeMounts: [{name: other, mountPath: /other}]}]"), 1, "hang")
	_, _, notStarted := submit(t, place(t, nil, "containers: [{command: [/none]}]"), 1, "hang")
	has(t, tooLarge, 0, batch.Queued, "^Unschedulable: .*Insufficient cpu")
	has(t, nowhere, 0, batch.Queued, "^Unschedulable: .*node affinity/selector")
	has(t, noImage, 0, batch.Held, "^ImagePullBackOff: .*127.0.0.1:1/none:1")
	has(t, noSecret, 0, batch.Queued, `^FailedMount: .*secret "none" not found`)
	if c := has(t, notStarted, 0, batch.Failed, "^StartError: .*/none"); c.Exit != 128 {
		t.Errorf("%+v", c)
	}
}

// Ends with a cause outside the worker are distinguished from its own ends.
func ends(t *testing.T) {
	_, _, eats := submit(t, place(t, func(on *scenario.Kubernetes) { on.Limits = []string{"memory=64Mi"} }), 1, "eat")
	_, _, late := submit(t, place(t, func(on *scenario.Kubernetes) { on.Deadline = unit.Duration(2 * time.Second) }), 1, "hang")
	c, j, deleted := submit(t, place(t, nil), 2, "hang")
	batchtest.Await(t, "both run", func() bool { return j.Counts().Running == 2 })
	kubectl(t, "delete", "pod", "--wait=false", "--selector=batch.kubernetes.io/job-completion-index=1,"+label)
	has(t, deleted, 1, batch.Failed, "^its pod is gone$|exit status 7")
	if n := j.Counts(); n.Running != 1 {
		t.Errorf("the failure of one worker ends the other: %+v", n)
	}
	if trace, ok := c.Trace(0); !ok || trace.Outside(c.Traces) == 0 {
		t.Errorf("worker 0 does not run: %+v", trace)
	}
	if c := has(t, eats, 0, batch.Failed, "^OOMKilled, exit status 137$"); c.Exit != 137 {
		t.Errorf("%+v", c)
	}
	has(t, late, 0, batch.Failed, "DeadlineExceeded|exit status 7")
}

// A namespace with room for one pod runs one worker, and the reason why the others wait is
// reported.
func quota(t *testing.T) {
	kubectl(t, "create", "namespace", "small")
	kubectl(t, "create", "quota", "one", "--namespace=small", "--hard=pods=1")
	_, j, _ := submit(t, place(t, func(on *scenario.Kubernetes) { on.Namespace = "small" }), 2, "hang")
	batchtest.Await(t, "one runs, and it is told why the other does not", func() bool {
		n := j.Counts()
		return n.Running == 1 && n.Queued == 1 && strings.Contains(strings.Join(n.Away, "\n"), "exceeded quota: one")
	})
}

// as makes kubectl of this test use a service account of the namespace default with the rights of a
// manifest.
func as(t *testing.T, name, role string) {
	t.Helper()
	kubectl(t, "create", "serviceaccount", name)
	if role != "" {
		if _, err := batch.Run(t.Context(), strings.NewReader(role), "kubectl", "apply", "-f", "-"); err != nil {
			t.Fatal(err)
		}
		kubectl(t, "create", "rolebinding", name, "--role=weir-workers", "--serviceaccount=default:"+name)
	}
	token := kubectl(t, "create", "token", name)
	config := filepath.Join(t.TempDir(), "kubeconfig")
	for _, args := range [][]string{
		{"config", "view", "--flatten", "--minify"}, {"config", "set-credentials", "user", "--token=" + token, "--kubeconfig=" + config},
		{"config", "set-context", "--current", "--user=user", "--kubeconfig=" + config},
	} {
		said := kubectl(t, args...)
		if args[1] == "view" {
			if err := os.WriteFile(config, []byte(said), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Setenv("KUBECONFIG", config)
}

// The Role of the documentation has all permissions that a user needs, and all missing permissions
// are listed before anything is made.
func rights(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/machines.md")
	found := regexp.MustCompile("(?s)```yaml\n(apiVersion: rbac.*?)```").FindSubmatch(page)
	if err != nil || found == nil {
		t.Fatalf("docs/machines.md has no Role: %v", err)
	}
	role := string(found[1])
	t.Run("None", func(t *testing.T) {
		as(t, "nobody", "")
		c := place(t, nil).Work(t, 1, "leave")
		_, err := New().Submit(t.Context(), c.Work)
		if err == nil || !strings.Contains(err.Error(), "namespace default: create jobs.batch, get jobs.batch, list jobs.batch, "+
			"delete jobs.batch, get pods, list pods, get pods/log, create secrets, delete secrets: ") {
			t.Error(err)
		}
	})
	t.Run("Few", func(t *testing.T) {
		as(t, "few", strings.Replace(role, "pods/log", "pods/other", 1))
		c := place(t, nil).Work(t, 1, "leave")
		_, err := New().Submit(t.Context(), c.Work)
		if err == nil || !strings.Contains(err.Error(), "namespace default: get pods/log: ") {
			t.Error(err)
		}
	})
	t.Run("Enough", func(t *testing.T) {
		as(t, "user", role)
		_, _, log := submit(t, place(t, nil), 1, "leave")
		has(t, log, 0, batch.Ended, "")
	})
}

// If the cluster refuses a field, the error has its message, and nothing stays.
func wrong(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*scenario.Kubernetes)
		more    string
		config  string
		problem string
	}{
		"image":      {change: func(on *scenario.Kubernetes) { on.Image = "" }, problem: "on.kubernetes.image: missing"},
		"requests":   {change: func(on *scenario.Kubernetes) { on.Requests = []string{"cpu 4"} }, problem: "cpu=4"},
		"line":       {more: "--partition=short", problem: "fields of the pod's spec"},
		"own":        {more: "containers: [{args: [x]}]", problem: "weir sets args itself"},
		"field":      {more: "dnsPolicy: Never", problem: "dnsPolicy"},
		"namespace":  {change: func(on *scenario.Kubernetes) { on.Namespace = "none" }, problem: `namespaces "none" not found`},
		"context":    {change: func(on *scenario.Kubernetes) { on.Context = "none" }, problem: "none"},
		"kubeconfig": {config: "/none", problem: "kubectl knows no cluster: set KUBECONFIG"},
	} {
		t.Run(name, func(t *testing.T) {
			var more []string
			if c.more != "" {
				more = append(more, c.more)
			}
			if c.config != "" {
				t.Setenv("KUBECONFIG", c.config)
			}
			w := place(t, c.change, more...).Work(t, 1, "leave")
			_, err := New().Submit(t.Context(), w.Work)
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%v, want %q", err, c.problem)
			}
		})
	}
}
