package lab_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
)

// If the test binary is killed and cannot clean up, its servers end as well, with all their
// processes, folders and interfaces.
func TestServersDieWithUs(t *testing.T) {
	tier.Slow(t, "kills programs with their servers")
	servers := func(t *testing.T) []*lab.System {
		return []*lab.System{
			labtest.Start(t, lab.NginxConfig{Workers: 2}), labtest.Start(t, lab.XRootDConfig{}), labtest.Start(t, lab.GridFTPConfig{}),
		}
	}
	limited := func(t *testing.T) []*lab.System {
		if os.Geteuid() != 0 {
			tier.Without(t, "root", "limited disks are for root")
		}
		return []*lab.System{labtest.Start(t, lab.NginxConfig{Config: lab.Config{Disk: lab.Disk{Rate: 20 << 20, Size: 1 << 30}}})}
	}
	balanced := func(t *testing.T) []*lab.System {
		return []*lab.System{labtest.Start(t, lab.GridFTPConfig{Servers: 2})}
	}
	for name, start := range map[string]func(*testing.T) []*lab.System{
		"servers": servers, "disks": limited, "balanced": balanced, "htcondor": poolAtWork, "slurm": slurmAtWork, "ssh": nodeAtWork,
		"kubernetes": kubernetesAtWork,
	} {
		t.Run(name, func(t *testing.T) {
			if name == "kubernetes" {
				tier.Full(t, "Kubernetes")
			}
			if os.Getenv("WEIR_LAB_ORPHAN") == "" {
				orphaned(t, name)
				return
			}
			for _, s := range start(t) {
				fmt.Println("folder", s.Dir)
				if s.Groups() != "" {
					groups, _ := filepath.Glob(lab.CGroups + "/*/" + s.Groups() + "-*")
					for _, group := range groups {
						fmt.Println("folder", group)
					}
				}
				for _, pid := range s.Pids() {
					fmt.Println("pid", pid)
				}
				for _, server := range s.Servers {
					fmt.Println("interface", server.Interface)
				}
			}
			fmt.Println("all")
			select {
			case <-t.Context().Done():
			case <-time.After(time.Minute):
			}
		})
	}
}

// orphaned starts the test with this name in a process of its own, kills it when it has printed the
// list of everything that it started, and checks that no part of it is left.
func orphaned(t *testing.T, name string) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServersDieWithUs$/^"+name+"$", "-test.v")
	cmd.Env = append(os.Environ(), "WEIR_LAB_ORPHAN=1", "TMPDIR="+shared(t))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	printed := map[string][]string{}
	var said strings.Builder
	for lines := bufio.NewScanner(out); printed["all"] == nil && lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		word, rest, _ := strings.Cut(lines.Text(), " ")
		printed[word] = append(printed[word], rest)
	}
	space := map[string]bool{}
	for _, pid := range printed["pid"] {
		if at, err := os.Readlink("/proc/" + pid + "/ns/pid"); err == nil {
			space[at] = true
		}
	}
	if own, err := os.Readlink("/proc/self/ns/pid"); err == nil {
		delete(space, own)
	}
	begin := time.Now()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if strings.Contains(said.String(), "--- SKIP") {
		t.Skip(said.String())
	}
	if len(printed["pid"]) == 0 || len(printed["folder"]) == 0 {
		t.Fatalf("it printed nothing:\n%s", said.String())
	}
	for _, word := range printed["pid"] {
		var pid int
		_, _ = fmt.Sscan(word, &pid)
		within(t, patience, "process group "+word+" to end", func() bool { return !lab.Alive(pid) })
	}
	for at := range space {
		within(t, patience, "all processes of "+at+" to end", func() bool { return len(inSpace(t, at)) == 0 })
	}
	for _, dir := range printed["folder"] {
		within(t, patience, "folder "+dir+" to go", func() bool { _, err := os.Stat(dir); return err != nil })
	}
	t.Logf("all ended %.2f s after", time.Since(begin).Seconds())
	for _, name := range printed["interface"] {
		within(t, patience, "interface "+name+" to go", func() bool { _, err := net.InterfaceByName(name); return err != nil })
	}
}

// poolAtWork is a pool that runs a job.
func poolAtWork(t *testing.T) []*lab.System {
	s := labtest.Start(t, lab.HTCondorConfig{Slots: 2})
	labtest.Use(t, s)
	dir := t.TempDir()
	here := filepath.Join(dir, "here")
	submit := filepath.Join(dir, "submit")
	if err := os.WriteFile(submit, []byte("executable = /bin/sh\ntransfer_executable = False\narguments = \"-c 'touch "+here+
		"; sleep 1000'\"\nlog = "+dir+"/events\nqueue\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, nil, "condor_submit", submit)
	return atWork(t, s, here)
}

// slurmAtWork is a Slurm that runs a job.
func slurmAtWork(t *testing.T) []*lab.System {
	s := labtest.Start(t, lab.SlurmConfig{CPUs: 2})
	labtest.Use(t, s)
	here := filepath.Join(t.TempDir(), "here")
	run(t, nil, "sbatch", "--output=/dev/null", "--wrap", "touch "+here+"; sleep 1000")
	return atWork(t, s, here)
}

// kubernetesAtWork is a Kubernetes that runs a pod.
func kubernetesAtWork(t *testing.T) []*lab.System {
	s := labtest.Start(t, lab.KubernetesConfig{})
	labtest.Use(t, s)
	file := filepath.Join(t.TempDir(), "pod.json")
	pod := `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "waits"}, "spec": {"hostNetwork": true,
		"containers": [{"name": "waits", "image": "` + lab.PauseImage + `"}]}}`
	if err := os.WriteFile(file, []byte(pod), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, nil, "kubectl", "create", "-f", file)
	within(t, patience, "the pod to run", func() bool {
		return run(t, nil, "kubectl", "get", "pod", "waits", "-o", "jsonpath={.status.phase}") == "Running"
	})
	return []*lab.System{s}
}

// nodeAtWork is a node with a process that no parent waits for.
func nodeAtWork(t *testing.T) []*lab.System {
	s := labtest.Start(t, lab.SSHConfig{})
	labtest.Use(t, s)
	here := filepath.Join(t.TempDir(), "here")
	run(t, nil, "ssh", "node1", "setsid sh -c 'touch "+here+"; sleep 1000' >/dev/null 2>&1 </dev/null &")
	return atWork(t, s, here)
}

func atWork(t *testing.T, s *lab.System, here string) []*lab.System {
	within(t, patience, "the job to run", func() bool { _, err := os.Stat(here); return err == nil })
	return []*lab.System{s}
}
