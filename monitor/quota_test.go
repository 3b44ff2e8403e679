package monitor

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/burn"
	"weir/internal/require"
)

// TestQuotaFiles: quotas of both versions of control groups, of a process and of its parents.
func TestQuotaFiles(t *testing.T) {
	const (
		v1    = "32 31 0:29 ROOT MOUNT/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
		acct  = "33 31 0:30 / MOUNT/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
		v2    = "41 31 0:38 ROOT MOUNT/cpu rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n"
		stat1 = "nr_periods 369\nnr_throttled 193\nthrottled_time 1500000000\n"
		stat2 = "usage_usec 5\nnr_periods 369\nnr_throttled 193\nthrottled_usec 1500000\n"
	)
	for name, c := range map[string]struct {
		groups, mounts, root string
		files                map[string]string
		want                 *Quota
	}{
		"none": {"3:cpuset:/x\n", acct, "/", nil, nil},
		"version 1": {"3:cpuset:/x\n4:cpu,cpuacct:/job\n", acct + v1, "/", map[string]string{
			"job/cpu.cfs_quota_us": "6000\n", "job/cpu.cfs_period_us": "100000\n", "job/cpu.stat": stat1,
		}, &Quota{Cores: 0.06, Group: "/job", Periods: 369, Throttled: 193, Lost: 1.5}},
		"version 1, a parent has less": {"4:cpu:/a/b/c\n", v1, "/", map[string]string{
			"a/cpu.cfs_quota_us": "50000", "a/cpu.cfs_period_us": "100000", "a/cpu.stat": stat1,
			"a/b/cpu.cfs_quota_us": "-1", "a/b/cpu.cfs_period_us": "100000",
			"a/b/c/cpu.cfs_quota_us": "200000", "a/b/c/cpu.cfs_period_us": "100000",
		}, &Quota{Cores: 0.5, Group: "/a", Periods: 369, Throttled: 193, Lost: 1.5}},
		"version 1, no quota": {"4:cpu:/a\n", v1, "/", map[string]string{"a/cpu.cfs_quota_us": "-1", "a/cpu.cfs_period_us": "100000"}, nil},
		"version 2": {"0::/job\n", v2, "/", map[string]string{"job/cpu.max": "50000 100000\n", "job/cpu.stat": stat2},
			&Quota{Cores: 0.5, Group: "/job", Periods: 369, Throttled: 193, Lost: 1.5}},
		"version 2, no quota but of a parent": {"0::/a/b\n", v2, "/", map[string]string{
			"a/b/cpu.max": "max 100000\n", "a/cpu.max": "150000 50000", "a/cpu.stat": stat2,
		}, &Quota{Cores: 3, Group: "/a", Periods: 369, Throttled: 193, Lost: 1.5}},
		"a container that sees its group as /": {"0::/\n", v2, "/", map[string]string{"cpu.max": "50000 100000", "cpu.stat": stat2},
			&Quota{Cores: 0.5, Group: "/", Periods: 369, Throttled: 193, Lost: 1.5}},
		"a container with the names of its host": {"4:cpu:/docker/1\n", v1, "/docker/1", map[string]string{
			"cpu.cfs_quota_us": "50000", "cpu.cfs_period_us": "100000", "cpu.stat": stat1,
		}, &Quota{Cores: 0.5, Group: "/docker/1", Periods: 369, Throttled: 193, Lost: 1.5}},
		"nonsense": {"4:cpu:/a\n0::\n:::\n", v1, "/", map[string]string{"a/cpu.cfs_quota_us": "many", "a/cpu.cfs_period_us": "0"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeProc(t)
			f.write("self/cgroup", c.groups)
			f.write("self/mountinfo", strings.NewReplacer("ROOT", c.root, "MOUNT", f.root+"/groups").Replace(c.mounts))
			for file, content := range c.files {
				f.write("groups/cpu/"+file, content)
			}
			fs := newProcFS(f.root, f.root)
			if diff := cmp.Diff(c.want, quota(fs, cpuGroups(fs))); diff != "" {
				t.Error(diff)
			}
			if e := about(fs); c.want != nil && (e.CPUQuota != c.want.Cores || e.CPUQuotaGroup != c.want.Group) || c.want == nil && e.CPUQuota != 0 {
				t.Errorf("%+v", e)
			}
		})
	}
}

// quotaChild marks the process that TestQuotaOfThisProcess starts in a control group.
const quotaChild = "WEIR_TEST_QUOTA_CHILD"

// cpuQuotaGroup makes a control group with a quota of a twentieth of a core, and a group in it, which it returns.
func cpuQuotaGroup(t *testing.T) (folder, name string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root makes control groups")
	}
	root, settings := "/sys/fs/cgroup/cpu", map[string]string{"cpu.cfs_period_us": "20000", "cpu.cfs_quota_us": "1000"}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		root, settings = "/sys/fs/cgroup", map[string]string{"cpu.max": "1000 20000"}
		_ = os.WriteFile(root+"/cgroup.subtree_control", []byte("+cpu"), 0o644)
	}
	name = fmt.Sprintf("/weir-test-%d", os.Getpid())
	folder = filepath.Join(root+name, "inner")
	if err := os.Mkdir(root+name, 0o755); err != nil {
		t.Skip("no control groups can be made here: ", err)
	}
	t.Cleanup(func() { _ = os.Remove(root + name) })
	for file, value := range settings {
		if err := os.WriteFile(filepath.Join(root+name, file), []byte(value), 0o644); err != nil {
			t.Skip("no quota can be set here: ", err)
		}
	}
	require.NoError(t, os.Mkdir(folder, 0o755))
	t.Cleanup(func() { _ = os.Remove(folder) })
	return folder, name
}

// TestQuotaOfThisProcess: a process in a real control group, whose parent has a quota, finds this
// quota and the throttling.
func TestQuotaOfThisProcess(t *testing.T) {
	if os.Getenv(quotaChild) != "" {
		k := &keep{}
		w, err := Start(t.Context(), nil, Options{}, k)
		require.NoError(t, err)
		require.Eventually(t, "a second with a quota that was used up", func() bool {
			new(burn.Burner).For(5 * time.Millisecond)
			k.mu.Lock()
			defer k.mu.Unlock()
			for _, s := range k.all {
				if s.Quota != nil && s.Quota.Throttled > 0 {
					return true
				}
			}
			return false
		})
		require.NoError(t, w.Stop())
		require.NoError(t, json.NewEncoder(os.Stderr).Encode(About()))
		return
	}
	folder, name := cpuQuotaGroup(t)
	const join = `echo $$ >"$0/cgroup.procs" && exec "$@"`
	cmd := exec.CommandContext(t.Context(), "sh", "-c", join, folder, os.Args[0], "-test.run=^TestQuotaOfThisProcess$")
	cmd.Env = append(os.Environ(), quotaChild+"=1")
	var out strings.Builder
	cmd.Stderr = &out
	require.NoError(t, cmd.Run())
	var e Environment
	require.NoError(t, json.Unmarshal([]byte(out.String()), &e))
	if e.CPUQuota != 0.05 || e.CPUQuotaGroup != name {
		t.Errorf("%v cores by %q", e.CPUQuota, e.CPUQuotaGroup)
	}
}
