package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/analysis"
	"weir/loadtest/cluster/batch"
	"weir/loadtest/measure"
	"weir/loadtest/results"
)

// A run on a real pool has more workers than slots, its controller is killed in the middle of a
// step and started again, a job is held, and its end leaves no files or jobs.
func TestRunOnHTCondor(t *testing.T) {
	tier.Full(t, "runs on batch systems by the command; cluster/batch has them in the first tier")
	pool := labtest.Start(t, lab.HTCondorConfig{Slots: 3})
	labtest.Use(t, pool)
	s := labtest.Start(t, lab.NginxConfig{})
	fill(t, s.Data, 9, 64<<10)
	t.Run("killed", func(t *testing.T) { killedOnBatch(t, "htcondor", s.URL) })
	t.Run("few slots", func(t *testing.T) { fewSlots(t, "htcondor", s.URL) })
	t.Run("clients are jobs", func(t *testing.T) { clientsAsJobs(t, "htcondor", s.URL) })
	t.Run("killed jobs", func(t *testing.T) { killedOfJobs(t, "htcondor", s.URL) })
	t.Run("held", func(t *testing.T) {
		r := newRemote(t)
		p := r.start(t, "run", "--on", "htcondor", "--workers", "2", "--target", s.URL, "--clients", "2", "--duration", "2s", "--out", "run",
			"--set", "on.submit=[hold = True]", "--set", "on.wait=10s")
		code, said := p.ended()
		if code != exitError || !strings.Contains(said, "no worker connected within 10s") ||
			!strings.Contains(said, "2 workers (0-1) are held: submitted on hold at user's request") {
			t.Errorf("exit code %d\n%s", code, said)
		}
		r.left(t)
	})
}

// clientsAsJobs runs each client as a job of its own.
func clientsAsJobs(t *testing.T, system, url string) {
	r := newRemote(t)
	code, said := r.start(t, "run", "--on", system, "--target", url, "--clients", "2,3", "--duration", "6s", "--set", "on.job_per_client=true",
		"--set", "workload.think=20ms", "--set", "on.wait=1m", "--set", "load={ramp: 0, warmup: 0, cooldown: 1s}", "--out", "run").ended()
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	f := findings(t, r.run())
	if len(f.Curve) != 2 || f.Curve[1].Planned != 3 || f.Curve[1].Clients != 3 || f.Curve[1].Errors > 0 || len(f.Subintervals) != 8 ||
		len(f.Workers) != 5 {
		t.Errorf("%+v\n%s", f, said)
	}
	if f.Parts == nil || f.Parts.Total == nil || f.Parts.Each == nil {
		t.Errorf("%+v", f.Parts)
	}
	r.left(t)
}

// killedOfJobs kills a controller whose clients are jobs, more than there are slots, and starts it
// again. Each client counts for the time in which it was present.
func killedOfJobs(t *testing.T, system, url string) {
	r := newRemote(t)
	p := r.start(t, "run", "--on", system, "--target", url, "--clients", "5", "--duration", "6s", "--set", "on.job_per_client=true", "--set",
		"workload.think=20ms", "--set", "on.wait=1m", "--set", "load={ramp: 0, warmup: 0, cooldown: 1s}", "--out", "run")
	require.Eventually(t, "the first step", func() bool { return contains(filepath.Join(r.run(), results.IntervalsFile), `"phase":"ramp"`) })
	p.kill(t)
	code, said := r.start(t, "run", "--resume", "run").ended()
	if code != exitFine && code != exitInvalid || !strings.Contains(said, "workers still hold step 1, which goes on") ||
		strings.Contains(said, "jobs have begun") {
		t.Fatalf("exit code %d\n%s\nbefore:\n%s", code, said, p.out.String())
	}
	area := 0.0
	run, err := results.Open(r.run())
	require.NoError(t, err)
	for v, err := range run.Intervals() {
		require.NoError(t, err)
		if area += v.Clients * v.Seconds; v.Clients > 4.5 { // a client may begin in the second in which another client ends
			t.Errorf("%v clients at %v", v.Clients, v.Start)
		}
	}
	if area < 29.5 || area > 30.8 {
		t.Errorf("%.2f client seconds, want 30", area)
	}
	r.left(t)
}

// Runs on a real Slurm.
func TestRunOnSlurm(t *testing.T) {
	tier.Full(t, "runs on batch systems by the command; cluster/batch has them in the first tier")
	nodes := labtest.Start(t, lab.SlurmConfig{CPUs: 3})
	labtest.Use(t, nodes)
	s := labtest.Start(t, lab.NginxConfig{})
	fill(t, s.Data, 9, 64<<10)
	t.Run("killed", func(t *testing.T) { killedOnBatch(t, "slurm", s.URL) })
	t.Run("few slots", func(t *testing.T) { fewSlots(t, "slurm", s.URL) })
	t.Run("clients are jobs", func(t *testing.T) { clientsAsJobs(t, "slurm", s.URL) })
}

// Runs in pods of a real Kubernetes. Their image contains this program, which needs this machine's
// libraries.
func TestRunOnKubernetes(t *testing.T) {
	tier.Full(t, "Kubernetes")
	program, err := exec.LookPath("weir")
	if err != nil {
		t.Fatal(err)
	}
	labtest.Use(t, labtest.Start(t, lab.KubernetesConfig{Program: program}))
	s := labtest.Start(t, lab.NginxConfig{})
	fill(t, s.Data, 9, 64<<10)
	on := []string{"--set", "on.kubernetes={image: '" + lab.KubernetesImage + "', limits: [memory=1Gi]}", "--set",
		"on.submit=['hostNetwork: true', " +
			"'volumes: [{name: a, hostPath: {path: /lib}}, {name: b, hostPath: {path: /lib64}}, {name: c, hostPath: {path: /usr}}]', " +
			"'containers: [{volumeMounts: [{name: a, mountPath: /lib}, {name: b, mountPath: /lib64}, {name: c, mountPath: /usr}]}]']"}
	t.Run("killed", func(t *testing.T) { killedOnBatch(t, "kubernetes", s.URL, on...) })
	t.Run("manifest", kubernetesManifest)
	left, err := batch.Run(t.Context(), nil, "kubectl", "get", "jobs,pods,secrets", "--output=name")
	if err != nil || left != "" {
		t.Errorf("left in the cluster: %s, %v", left, err)
	}
}

// kubernetesManifest applies deploy/kubernetes.yaml. The coordinator runs, commands in its pod
// reach it, and the job with a load test reaches it as well.
func kubernetesManifest(t *testing.T) {
	dir := t.TempDir()
	kubectl := func(args ...string) string {
		t.Helper()
		said, err := batch.Run(t.Context(), nil, append([]string{"kubectl", "--namespace=weir"}, args...)...)
		if err != nil {
			t.Fatalf("kubectl %s: %v", strings.Join(args, " "), err)
		}
		return said
	}
	file, ours := filepath.Join(dir, "all.yaml"), newIssuer(t, "ours")
	require.NoError(t, os.WriteFile(file, []byte(manifestHere(t, dir)), 0o600))
	ours.sign("host", &x509.Certificate{DNSNames: []string{"weir.example.org"}})
	kubectl("create", "namespace", "weir")
	kubectl("create", "secret", "tls", "weir-cert", "--cert", ours.file("host.pem"), "--key", ours.file("host.key"))
	kubectl("apply", "--filename", file)
	kubectl("rollout", "status", "deployment/weir-coordinator", "--timeout=3m")
	in := []string{"exec", "deployment/weir-coordinator", "--", "weir"}
	if token := kubectl(append(in, "coordinator", "token", "--site", "A")...); len(strings.TrimSpace(token)) < 100 {
		t.Errorf("the token is %q", token)
	}
	if said := kubectl(append(in, "site", "list")...); !strings.Contains(said, "no sites") {
		t.Errorf("weir site list: %s", said)
	}
	kubectl("wait", "--for=condition=complete", "job/weir-load", "--timeout=3m")
	if f := findings(t, filepath.Join(dir, "weir-runs/first")); len(f.Curve) != 3 {
		t.Errorf("the load test has the curve %+v", f.Curve)
	}
}

// manifestHere returns deploy/kubernetes.yaml adapted to a lab's cluster: its image, volumes that
// are folders in dir, the network and the libraries of this machine.
func manifestHere(t *testing.T, dir string) string {
	text := string(require.File(t, "../../deploy/kubernetes.yaml"))
	var objects []string
	for _, o := range strings.Split(text, "\n---\n") {
		if !strings.Contains(o, "kind: ServiceMonitor") { // the cluster has no Prometheus operator
			objects = append(objects, o)
		}
	}
	text = strings.Join(objects, "\n---\n")
	for old, now := range map[string]string{
		"image: registry.example.org/weir:1.2.3":      "image: " + lab.KubernetesImage + "\n          imagePullPolicy: Never",
		"\n      automountServiceAccountToken: false": "\n      automountServiceAccountToken: false\n      hostNetwork: true",
		"          volumeMounts:\n": "          volumeMounts:\n            - {name: a, mountPath: /lib}\n" +
			"            - {name: b, mountPath: /lib64}\n            - {name: c, mountPath: /usr}\n",
		"      volumes:\n": "      volumes:\n        - {name: a, hostPath: {path: /lib}}\n" +
			"        - {name: b, hostPath: {path: /lib64}}\n        - {name: c, hostPath: {path: /usr}}\n",
		"https://se.example.org/data": "simulated://x?servers=2&service=5ms&files=9x1KiB",
		"--duration, 30s":             "--duration, 1s",
		`{cpu: "4", memory: 2Gi}`:     `{cpu: "1", memory: 100Mi}`,
		":9443":                       ":19443",
		" 9443":                       " 19443",
	} {
		if !strings.Contains(text, old) {
			t.Fatalf("deploy/kubernetes.yaml has no %q", old)
		}
		text = strings.ReplaceAll(text, old, now)
	}
	for claim, mode := range map[string]string{"weir-state": "ReadWriteOncePod", "weir-runs": "ReadWriteOnce"} {
		folder := filepath.Join(dir, claim)
		require.NoError(t, os.Mkdir(folder, 0o700))
		require.NoError(t, os.Chown(folder, 65532, 65532))
		text += "\n---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + claim + "}\nspec: {capacity: {storage: 50Gi}, " +
			"accessModes: [" + mode + "], hostPath: {path: " + folder + "}, claimRef: {namespace: weir, name: " + claim + "}}\n"
	}
	for path := dir; path != os.TempDir() && path != "/"; path = filepath.Dir(path) {
		require.NoError(t, os.Chmod(path, 0o755)) // for the pods' user
	}
	return text
}

// Runs on machines that ssh reaches.
func TestRunOverSSH(t *testing.T) {
	nodes := labtest.Start(t, lab.SSHConfig{Nodes: 2})
	labtest.Use(t, nodes)
	s := labtest.Start(t, lab.NginxConfig{})
	fill(t, s.Data, 9, 64<<10)
	r := newRemote(t)
	code, said := r.start(t, "run", "--on", "ssh", "--workers", "4", "--set", "on.hosts=[node1, node2]", "--target", s.URL, "--clients", "6",
		"--duration", "2s", "--set", "workload.think=20ms", "--out", "run").ended()
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	f := findings(t, r.run())
	hosts := map[string]int{}
	for _, w := range f.Workers {
		hosts[w.Host]++
	}
	if len(f.Curve) != 1 || f.Curve[0].ActiveClients < 5 || hosts["node1"] != 2 || hosts["node2"] != 2 {
		t.Errorf("%+v, workers on %v\n%s", f.Curve, hosts, said)
	}
	r.left(t)
	nobody(t, r.state)
}

// killedOnBatch kills a controller whose workers keep running, and starts it again.
func killedOnBatch(t *testing.T, system, url string, more ...string) {
	r := newRemote(t)
	p := r.start(t, append([]string{"run", "--on", system, "--workers", "3", "--target", url, "--clients", "3,6", "--duration", "5s", "--set",
		"workload.think=20ms", "--out", "run"}, more...)...)
	untilHeld(t, r.run(), 1)
	p.kill(t)
	code, said := r.start(t, "run", "--resume", "run").ended()
	if code != exitFine && code != exitInvalid || !strings.Contains(said, "workers still hold step 1, which goes on") {
		t.Fatalf("exit code %d\n%s\nbefore:\n%s", code, said, p.out.String())
	}
	f := findings(t, r.run())
	if len(f.Curve) != 2 || f.Curve[0].Duration < 4.9 || f.Curve[0].Duration > 5.3 || f.Curve[0].ActiveClients < 2.5 ||
		f.Curve[1].ActiveClients < 5 || f.Curve[1].Errors > 0 {
		t.Errorf("%+v\n%s", f.Curve, said)
	}
	if state, detail := status(f, "workers"); state != analysis.OK {
		t.Errorf("%s: %s\n%s", state, detail, said)
	}
	if f.Workers[0].Job == "" || f.Workers[0].Host == "" {
		t.Errorf("%+v", f.Workers)
	}
	r.left(t)
}

// fewSlots requests more workers than there are slots.
func fewSlots(t *testing.T, system, url string) {
	r := newRemote(t)
	code, said := r.start(t, "run", "--on", system, "--workers", "5", "--target", url, "--clients", "6", "--duration", "3s", "--set",
		"workload.think=20ms", "--set", "on.wait=8s", "--out", "run").ended()
	if code != exitFine && code != exitInvalid || !strings.Contains(said, "the run begins with 3 of 5 workers") ||
		!strings.Contains(said, "2 queued") {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	f := findings(t, r.run())
	if len(f.Curve) != 1 || f.Curve[0].Clients != 6 || f.Curve[0].ActiveClients < 5 { // 4 without one worker; on a busy machine some are late
		t.Errorf("%+v", f.Curve)
	}
	absent := 0
	for _, w := range f.Workers {
		if w.State == measure.Absent {
			absent++
		}
	}
	if state, detail := status(f, "workers"); state != analysis.Warn || absent != 2 || !strings.Contains(detail, "2 of 5 never started") {
		t.Errorf("%s: %s, %d absent\n%s", state, detail, absent, said)
	}
	if all, err := os.ReadDir(r.run() + "/batch"); err != nil || len(all) < 2 {
		t.Errorf("%v, %v", all, err)
	}
	r.left(t)
}
