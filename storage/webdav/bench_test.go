package webdav

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/burn"
	"weir/internal/require"
	"weir/internal/tlsconn/tlsconntest"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/storagetest"
)

// The benchmarks alternate a reference program and this driver at the same nginx. cpu-s/GB and
// cpu-us/op are the CPU time of the client's process; the server is another process.

const (
	bulkSize  = 256 << 20
	smallSize = 4 << 10
)

func benchNginx(b *testing.B) *lab.System {
	b.Helper()
	ng := labtest.Start(b, lab.NginxConfig{})
	for name, size := range map[string]int64{"bulk": bulkSize, "small": smallSize} {
		path := filepath.Join(ng.Data, name)
		require.NoError(b, os.WriteFile(path, nil, 0o644))
		require.NoError(b, os.Truncate(path, size))
	}
	return ng
}

func reportBulk(b *testing.B, used time.Duration) {
	bytes := float64(b.N) * bulkSize
	b.ReportMetric(used.Seconds()/(bytes/1e9), "cpu-s/GB")
	b.ReportMetric(bytes/1e9/b.Elapsed().Seconds(), "GB/s")
	b.ReportMetric(0, "ns/op")
}

// drive distributes b.N operations over clients.
func drive(b *testing.B, s storage.Service, clients int, op *storage.Op) {
	b.Helper()
	all := make([]storage.Client, clients)
	for i := range all {
		all[i] = s.Client()
		if _, err := all[i].Do(b.Context(), &storage.Op{Kind: storage.Login}, &quiet{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	before := burn.Process()
	var wg sync.WaitGroup
	share := func(i int) int { return b.N*(i+1)/clients - b.N*i/clients }
	for i, c := range all {
		wg.Go(func() {
			var q quiet
			for range share(i) {
				if _, err := c.Do(context.Background(), op, &q); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	used := burn.Process() - before
	if op.Size >= bulkSize {
		reportBulk(b, used)
	} else {
		b.ReportMetric(float64(used.Microseconds())/float64(b.N), "cpu-us/op")
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
		b.ReportMetric(0, "ns/op")
	}
	for _, c := range all {
		_ = c.Close() // the benchmark is over
	}
}

func curl(b *testing.B, args ...string) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), "curl", append([]string{"-s", "-f"}, args...)...)
	b.ResetTimer()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("curl: %v\n%s", err, out)
	}
	b.StopTimer()
	reportBulk(b, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
}

func BenchmarkDownload(b *testing.B) {
	labtest.Need(b, "nginx", "curl")
	ng := benchNginx(b)
	s := serviceAt(b, ng.URL, storage.Credentials{})
	op := &storage.Op{Kind: storage.Read, Path: "bulk", Size: bulkSize, Timeout: time.Minute}
	for _, streams := range []int{1, 64} {
		b.Run(fmt.Sprintf("curl/%d", streams), func(b *testing.B) {
			curl(b, "-Z", "--parallel-max", fmt.Sprint(streams), "-o", "/dev/null", fmt.Sprintf("%s/bulk?[1-%d]", ng.URL, b.N))
		})
		b.Run(fmt.Sprintf("weir/%d", streams), func(b *testing.B) { drive(b, s, streams, op) })
	}
}

func BenchmarkUpload(b *testing.B) {
	labtest.Need(b, "curl")
	url := startSink(b)
	s := serviceAt(b, url, storage.Credentials{})
	file := filepath.Join(b.TempDir(), "up")
	content := make([]byte, bulkSize)
	for i := range content {
		content[i] = byte(i * i >> 7)
	}
	require.NoError(b, os.WriteFile(file, content, 0o600))
	for _, streams := range []int{1, 16} {
		op := &storage.Op{Kind: storage.Write, Path: "up", Size: bulkSize, Seed: 3, Timeout: time.Minute}
		b.Run(fmt.Sprintf("curl/%d", streams), func(b *testing.B) {
			args := []string{"-Z", "--parallel-max", fmt.Sprint(streams)}
			for range b.N {
				args = append(args, "-o", "/dev/null", "-T", file, url+"/up")
			}
			curl(b, args...)
		})
		b.Run(fmt.Sprintf("weir/%d", streams), func(b *testing.B) { drive(b, s, streams, op) })
	}
}

// BenchmarkDecrypted reads a file over TLS alternately with a bare loop on crypto/tls and with this
// driver, which decrypts all data that it verifies and computes its checksum. It reports the ratio
// of their CPU times.
func BenchmarkDecrypted(b *testing.B) {
	const size = 64 << 20
	ng := labtest.Start(b, lab.NginxConfig{Config: lab.Config{TLS: true}, Extra: "ssl_protocols TLSv1.2 TLSv1.3;"})
	place(b, ng.Data, "file", 1, size)
	for _, suite := range tlsconntest.Suites() {
		b.Run(suite.Name, func(b *testing.B) {
			conf := trust(b, ng.CAFile)
			suite.Limit(b, conf)
			target := storagetest.TargetOf(b, ng.URLs["https"], storage.Credentials{TLS: conf})
			bare, err := tls.Dial("tcp", target.URL.Host, conf)
			require.NoError(b, err)
			defer bare.Close()
			client := storagetest.Client(b, Driver(), target)
			buf := make([]byte, 256<<10)
			request := fmt.Sprintf("GET %s/file HTTP/1.1\r\nHost: %s\r\n\r\n", target.URL.Path, target.URL.Host)
			sides := []func() error{
				func() error { return bareGet(bare, request, size, buf) },
				func() error {
					op := &storage.Op{Kind: storage.Read, Path: "file", Size: size, Sum: "adler32", Timeout: time.Minute}
					_, err := client.Do(b.Context(), op, &quiet{})
					return err
				},
			}
			var used [2]time.Duration
			for i := range 2 * (b.N + 1) {
				before := burn.Process()
				require.NoError(b, sides[i%2]())
				if i >= 2 { // the first run fills caches
					used[i%2] += burn.Process() - before
				}
			}
			b.ReportMetric(used[0].Seconds()/(float64(b.N)*size/1e9), "bare-cpu-s/GB")
			b.ReportMetric(used[1].Seconds()/(float64(b.N)*size/1e9), "cpu-s/GB")
			b.ReportMetric(used[1].Seconds()/used[0].Seconds(), "x-bare")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// bareGet sends a request and reads the response with a body of size bytes.
func bareGet(c *tls.Conn, request string, size int, buf []byte) error {
	if _, err := io.WriteString(c, request); err != nil {
		return err
	}
	var head []byte
	for body := -1; body < size; {
		n, err := c.Read(buf)
		if err != nil {
			return err
		}
		if body >= 0 {
			body += n
			continue
		}
		head = append(head, buf[:n]...)
		if i := bytes.Index(head, []byte("\r\n\r\n")); i >= 0 {
			body = len(head) - i - 4
		}
	}
	return nil
}

// BenchmarkSmall needs -benchtime with a count (100000x), so that wrk, which runs for a time, has
// run for as long.
func BenchmarkSmall(b *testing.B) {
	labtest.Need(b, "nginx", "wrk")
	ng := benchNginx(b)
	s := serviceAt(b, ng.URL, storage.Credentials{})
	op := &storage.Op{Kind: storage.Read, Path: "small", Size: smallSize, Timeout: time.Minute}
	for _, clients := range []int{64, 1000} {
		b.Run(fmt.Sprintf("wrk/%d", clients), func(b *testing.B) {
			cmd := exec.CommandContext(b.Context(), "wrk", "-t1", "-d2s", fmt.Sprintf("-c%d", clients), ng.URL+"/small")
			out, err := cmd.Output()
			require.NoError(b, err)
			requests := 0
			for line := range strings.Lines(string(out)) {
				if i := strings.Index(line, " requests in "); i > 0 {
					if _, err := fmt.Sscan(line[:i], &requests); err != nil {
						b.Fatal(err)
					}
				}
			}
			used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			b.ReportMetric(float64(used.Microseconds())/float64(requests), "cpu-us/op")
			b.ReportMetric(float64(requests)/2, "op/s")
			b.ReportMetric(0, "ns/op")
		})
		b.Run(fmt.Sprintf("weir/%d", clients), func(b *testing.B) { drive(b, s, clients, op) })
	}
}
