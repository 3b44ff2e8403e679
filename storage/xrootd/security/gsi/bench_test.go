//go:build unix

package gsi

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/burn"
	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/gridcert/gridcerttest"
	"weir/storage/xrootd/security"
)

// BenchmarkLogin measures the client's part of logins at one server: with a key of 2048 bits, the
// usual size for proxies, and the primes of XRootD 5.5 and 6.
func BenchmarkLogin(b *testing.B) {
	for name, prime := range map[string]string{"prime512": prime512, "prime3072": prime3072} {
		b.Run(name, func(b *testing.B) {
			ca := gridcerttest.NewCA(b, "Bench")
			p := &peer{pair: ca.Host(b, "localhost"), prime: prime}
			user := ca.User(b) // the proxy made from it has 2048 bits
			benchLogin(b, newMethod(b, storage.Credentials{From: storage.Auth{
				CADir:    gridcerttest.CADir(b, ca),
				CertFile: gridcerttest.WriteFile(b, 0o600, "cert.pem", user.CertPEM()),
				KeyFile:  gridcerttest.WriteFile(b, 0o600, "key.pem", user.KeyPEM()),
			}}), p)
		})
	}
}

func benchLogin(b *testing.B, m *Method, p *peer) {
	server := security.Server{Host: "localhost", Parameters: p.offer()}
	if err := p.login(m, "localhost"); err != nil { // work that is done only once is excluded
		b.Fatal(err)
	}
	const batch = 32
	var exchanges [batch]security.Exchange
	var messages [batch][]byte
	var cpu time.Duration
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += batch {
		n := min(batch, b.N-done)
		cpu -= burn.Process()
		for i := range n {
			exchanges[i] = must(m.Begin(b.Context(), server))
			messages[i] = must(exchanges[i].Next(nil))
		}
		b.StopTimer()
		cpu += burn.Process()
		for i := range n {
			messages[i] = must(p.certify(messages[i]))
		}
		b.StartTimer()
		cpu -= burn.Process()
		for i := range n {
			must(exchanges[i].Next(messages[i]))
		}
		cpu += burn.Process()
	}
	b.ReportMetric(cpu.Seconds()*1000/float64(b.N), "ms-CPU/login")
}

// BenchmarkBesideXrdcp compares the client's CPU time of a login at a real server with this package
// and with xrdcp. Both connect, log in and request one file; xrdcp also runs at a server without
// authentication, so that the cost of its login alone can be computed. The server's CPU time is not
// included.
func BenchmarkBesideXrdcp(b *testing.B) {
	labtest.Need(b, "xrdcp")
	s := newSite(b)
	open := labtest.Start(b, lab.XRootDConfig{})
	require.NoError(b, os.WriteFile(open.Data+"/a", []byte("hello\n"), 0o644))
	m := newMethod(b, s.cred)
	require.NoError(b, s.works(m, "localhost", nil))
	const rounds, each = 4, 20
	var ours, theirs, without time.Duration
	for range b.N {
		for range rounds {
			before := burn.Process()
			for range each {
				require.NoError(b, s.works(m, "localhost", nil))
			}
			ours += (burn.Process() - before) / each
			theirs += xrdcp(b, s.System)
			without += xrdcp(b, open)
		}
	}
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(b.N*rounds) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(ours), "ms-CPU/login")
	b.ReportMetric(ms(theirs), "ms-CPU/xrdcp")
	b.ReportMetric(ms(theirs-without), "ms-CPU/xrdcp-login")
	b.ReportMetric(ms(theirs)/ms(ours), "x")
}

func xrdcp(b *testing.B, s *lab.System) time.Duration {
	b.Helper()
	before := ofChildren(b)
	cmd := exec.CommandContext(b.Context(), "xrdcp", "-s", "-f", strings.TrimSuffix(s.URL, "/")+"/a", os.DevNull)
	cmd.Env = append(os.Environ(), s.Env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return ofChildren(b) - before
}

// ofChildren returns the CPU time of the child processes that have ended.
func ofChildren(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
