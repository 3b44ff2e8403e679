package monitor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/blockdevice"

	"weir/internal/burn"
	"weir/internal/require"
)

// BenchmarkProcfs compares the readers of this package with the readers of the library
// github.com/prometheus/procfs: one look at the counters of this machine, at one process, and at
// the open files of a process with 20,000.
func BenchmarkProcfs(b *testing.B) {
	lib, err := procfs.NewDefaultFS()
	if err != nil {
		b.Skip("no /proc here:", err)
	}
	disks, _ := blockdevice.NewDefaultFS()
	own := newProcFS("", "")
	defer own.close()
	proc, err := lib.Proc(os.Getpid())
	require.NoError(b, err)
	l := newLocal(Host{}, Options{}, nil, newClock())
	defer l.close()
	soft, _, err := RaiseOpenFiles()
	if err != nil || soft < 1000 {
		b.Skipf("%d files may be open here: %v", soft, err)
	}
	open := int(min(20_000, soft-200)) // the readers open files as well
	files := make([]*os.File, open)
	for i := range files {
		if files[i], err = os.Open(os.DevNull); err != nil {
			b.Fatal(err)
		}
	}
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"host/own", func() error {
			if problems := l.count(); len(problems) > 0 {
				return fmt.Errorf("%q", problems)
			}
			return nil
		}},
		{"host/library", func() error {
			_, err1 := lib.Stat()
			_, err2 := lib.NetDev()
			_, err3 := disks.ProcDiskstats()
			_, err4 := lib.LoadAvg()
			_, err5 := lib.Meminfo()
			_, err6 := proc.Snmp()
			_, err7 := proc.Netstat()
			_, _ = lib.PSIStatsForResource("cpu") // as own: not every kernel has it
			return errors.Join(err1, err2, err3, err4, err5, err6, err7)
		}},
		{"pids/own", func() error { _, err := own.pids(nil); return err }},
		{"pids/library", func() error { _, err := lib.AllProcs(); return err }},
		{"stat/own", func() error { _, err := own.stat(proc.PID); return err }},
		{"stat/library", func() error { _, err := proc.Stat(); return err }},
		{"io/own", func() error {
			text, err := own.readPid(proc.PID, "io")
			if err == nil {
				_, _, err = parseProcIO(text)
			}
			return err
		}},
		{"io/library", func() error { _, err := proc.IO(); return err }},
		{"files/own", func() error { return atLeast(own.countFiles(proc.PID, 0, 0), open) }},
		{"files/library", func() error {
			n, err := proc.FileDescriptorsLen()
			return errors.Join(err, atLeast(n, open))
		}},
		{"thread/own", func() error {
			if _, ok := own.threadCPU(proc.PID, proc.PID); !ok {
				return errors.New("no CPU time of the thread")
			}
			return nil
		}},
		{"thread/library", func() error {
			t, err := lib.Thread(proc.PID, proc.PID)
			if err == nil {
				_, err = t.Stat()
			}
			return err
		}},
		{"sockets/own/absent", func() error { _, err := own.listening(noTarget().Addr(), 1); return err }},
		{"sockets/own/there", func() error {
			inodes, err := own.listening(noTarget().Addr(), port)
			return errors.Join(err, atLeast(len(inodes), 1))
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			n, before := 0, burn.Process()
			for ; b.Loop(); n++ {
				require.NoError(b, c.do())
			}
			b.ReportMetric(float64((burn.Process()-before).Microseconds())/float64(n), "cpu-us/op") // not the clock: the machine is busy
		})
	}
}

// atLeast fails if a reader has found less than exists, so that the cost of an error is never taken
// for the cost of reading.
func atLeast(n, want int) error {
	if n < want {
		return fmt.Errorf("%d instead of at least %d", n, want)
	}
	return nil
}
