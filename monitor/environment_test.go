package monitor

import (
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
)

func TestAboutFixture(t *testing.T) {
	e := about(newProcFS("testdata/proc", "testdata/sys"))
	if e.Kernel != "6.1.0-test" || e.CPU != "Test CPU 3000" || e.Boot.Unix() != 1700000000 ||
		!strings.HasPrefix(e.Virtualization, "virtual machine") || e.CongestionControl != "bbr" ||
		e.ReceiveMemory != [3]int64{4096, 131072, 6291456} ||
		e.SendMost != 212992 || e.Backlog != 4096 || e.PortLow != 1024 || e.PortHigh != 65535 || e.Cores != 2 || e.Memory != 16384000<<10 {
		t.Errorf("%+v", e)
	}
	if nothing := about(newProcFS("testdata/none", "testdata/none")); nothing.Kernel != "" || nothing.Cores != 0 ||
		nothing.Go != runtime.Version() {
		t.Errorf("%+v", nothing)
	}
}

func TestAboutHere(t *testing.T) {
	e := About()
	if age := time.Since(e.Start); age < -2*time.Second || age > time.Hour {
		t.Errorf("this process started at %v", e.Start)
	}
	if e.FilesSoft == 0 || e.FilesHard < e.FilesSoft || e.Host == "" || e.Kernel == "" || e.Cores < 1 || e.Memory < 1<<20 {
		t.Errorf("%+v", e)
	}
	b, err := json.Marshal(e)
	if err != nil || !strings.Contains(string(b), `"memory_bytes":`) {
		t.Errorf("%s, %v", b, err)
	}
}

func TestRaiseOpenFiles(t *testing.T) {
	_, most, err := openFiles()
	require.NoError(t, err)
	soft, hard, err := RaiseOpenFiles()
	if err != nil || soft != most || hard != most {
		t.Errorf("%d, %d, %v", soft, hard, err)
	}
	if now, _, _ := openFiles(); now != most {
		t.Errorf("the limit is %d, not %d", now, most)
	}
}

func TestVirtualization(t *testing.T) {
	f := newFakeProc(t)
	f.write("class/dmi/id/sys_vendor", "Acme\n")
	f.write("class/dmi/id/product_name", "Cloud 9\n")
	f.write("self/cgroup", "0::/kubepods/pod1\n")
	fs := newProcFS(f.root, f.root)
	got := virtualization(fs, true)
	if !strings.HasPrefix(got, "virtual machine (Acme Cloud 9), ") {
		t.Error(got)
	}
	if _, err := os.Stat("/.dockerenv"); err != nil && !strings.HasSuffix(got, "kubepods container") {
		t.Error(got)
	}
}
