package run

import (
	"strings"
	"testing"

	"weir/monitor"
)

// A CPU quota limits this process, for any number of threads of Go's runtime.
func TestCoresWithAQuota(t *testing.T) {
	for _, c := range []struct {
		used     int
		quota    float64
		is, lack string
		verdict  string
	}{
		{2, 0, "2 used of 8", "quota", "ok"},
		{8, 8, "8 used of 8", "quota", "ok"},
		{2, 0.5, "0.5 used of 8 (Fast): the CPU quota of control group /job allows 0.5 of 8 cores", "2 used", "warn"},
		{3, 2.5, "2.5 used of 8", "3 used", "ok"},
		{1, 4, "1 used of 8", "4 used", "warn"}, // by affinity
	} {
		e := &monitor.Environment{Cores: 8, CoresUsed: c.used, CPU: "Fast", CPUQuota: c.quota, CPUQuotaGroup: "/job"}
		got := checkCores(e)
		if got.Verdict != c.verdict || !strings.HasPrefix(got.Is, c.is) || strings.Contains(got.Is, c.lack) {
			t.Errorf("%d cores, quota %g: %+v", c.used, c.quota, got)
		}
	}
}

// For a token file that is named and does not exist, the check has the same sentence as runs.
func TestDoctorSaysWhatToDo(t *testing.T) {
	file := t.TempDir() + "/token"
	t.Setenv("BEARER_TOKEN", "")
	t.Setenv("BEARER_TOKEN_FILE", file)
	if got := checkToken(t.Context()); got.Verdict != "warn" || !strings.HasPrefix(got.Advice, file+" is not on this machine") {
		t.Errorf("%+v", got)
	}
}
