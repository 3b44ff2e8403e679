package rigs

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/tier"
	"weir/lab/labtest"
	"weir/loadtest/challenge"
)

var minutesFlag = flag.Int("minutes", 0, "`MINUTES` of each data challenge between real servers; 0: there is none")

// TestChallengeProof carries out data challenges between six real sites, with 12 links over emulated
// lines, by each injector. In the middle weir, the transfer service and a site are killed. Then the
// sums are compared with those of the servers.
func TestChallengeProof(t *testing.T) {
	tier.Full(t, "data challenges between real servers, by each injector")
	if *minutesFlag == 0 {
		t.Skip("give their duration with -minutes: at least 4")
	}
	labtest.Need(t, "xrootd", "openssl")
	weir := builtWeir(t)
	for _, by := range []challenge.Method{challenge.Direct, challenge.FTS, challenge.Rucio} {
		t.Run(string(by), func(t *testing.T) {
			t.Parallel()
			if by == challenge.Rucio {
				labtest.FTS(t)
			}
			minutes := time.Duration(*minutesFlag) * time.Minute
			p := newProof(newStage(t, weir, minutes+10*time.Minute), by, minutes)
			p.play()
			p.judge()
			for _, missed := range p.missed {
				t.Errorf("%s", missed)
			}
			if *keepFlag != "" {
				p.save(filepath.Join(*keepFlag, fmt.Sprintf("proof-%s-%d", by, *minutesFlag)))
			}
		})
	}
}

// A proof is a data challenge between real servers.
type proof struct {
	*grid
	by      challenge.Method
	minutes time.Duration
	rate    float64 // bit/s, of each link
	size    int     // of files
	sources int
	service *proofService // nil: weir requests the copies itself
	run     *ran
	xrootd  map[string]bool // sites with XRootD
	begun   int             // copies
	second  time.Time       // begin of the second stage
	faults  []fault
}

// A fault is a part that was killed.
type fault struct {
	name     string
	from, to time.Time
}

// newProof starts the sites, and the transfer service if there is one.
func newProof(s *stage, by challenge.Method, minutes time.Duration) *proof {
	p := &proof{grid: &grid{stage: s}, by: by, minutes: minutes, rate: 1e6, size: 128 << 10, sources: 4, xrootd: map[string]bool{}}
	switch by {
	case challenge.FTS:
		p.size = 256 << 10
	case challenge.Rucio: // each file is at a site once
		p.rate, p.size, p.sources = 0.6e6, 1<<20, 50
	}
	p.startSites()
	switch by {
	case challenge.FTS:
		p.service = p.newService()
	case challenge.Rucio:
		p.service = p.newService()
		p.service.startRucio()
	}
	return p
}

// proofLinks returns the 12 links: each site sends to the next two.
func proofLinks() (all []string) {
	for i := range proofSites {
		for k := 1; k <= 2; k++ {
			all = append(all, siteName(i)+siteName((i+k)%proofSites))
		}
	}
	return all
}

// text returns the file of the challenge.
func (p *proof) text() string {
	var b strings.Builder
	if p.service != nil {
		b.WriteString(p.service.inject())
	}
	b.WriteString("sites:\n")
	for _, w := range p.sites {
		fmt.Fprintf(&b, "  - {name: %s, url: 'http://%s%s'}\n", w.name, w.address, w.prefix())
	}
	b.WriteString("links:\n")
	for _, l := range proofLinks() {
		mode := ""
		if l[1:] == passiveSite && p.by == challenge.Direct {
			mode = ", mode: push"
		}
		fmt.Fprintf(&b, "  - {from: %s, to: %s, rate: %gkbit/s%s}\n", l[:1], l[1:], p.rate/1e3, mode)
	}
	begin := p.minutes / 6
	fmt.Fprintf(&b, "profile: [{for: %v, at: 50%%}, {for: %v, at: 100%%}]\nfiles: {size: %dB, sources: %d}\ntimeout: 5m\n",
		begin, p.minutes-begin, p.size, p.sources)
	return b.String()
}

// play carries out the challenge. weir, the transfer service and a site are killed one after the other.
func (p *proof) play() {
	r := p.begin(p.text(), how{verb: challengeVerb})
	part := p.minutes / 8
	r.at(2, part)
	p.fault("weir", func() {
		p.must(r.cmd.Process.Kill())
		_ = r.cmd.Wait() // its error only reports the signal
		dir := r.dir
		r = p.begin("", how{verb: challengeVerb, args: []string{"--resume", dir}, flags: []string{"--quiet"}, open: true})
		r.dir = dir
	})
	r.at(2, 2*part)
	if p.service != nil {
		p.fault("transfer service", func() {
			p.service.kill()
			p.sleep(5 * time.Second)
			p.service.begin()
		})
	}
	r.at(2, 3*part)
	p.fault("site E", func() {
		p.site("E").kill()
		p.sleep(part / 4)
		p.must(p.site("E").begin())
	})
	p.run = r.wait()
	if p.run.exit != 0 {
		p.expect(false, "exit %d: %s", p.run.exit, p.run.text)
	}
	p.Logf("%s", p.run.text)
}

// fault kills a part and records the time until it has returned.
func (p *proof) fault(name string, do func()) {
	from := time.Now()
	do()
	p.faults = append(p.faults, fault{name, from, time.Now()})
	p.Logf("%s was killed at %s, back after %.1f s", name, from.Format("15:04:05"), time.Since(from).Seconds())
}

// proofService is a coordinator, and a Rucio if it has one.
type proofService struct {
	*proof
	*child
	argv    []string
	env     []string
	url     string
	token   string // file
	cert    string // file of Rucio
	rucio   *rucioOf
	address string
}

// inject returns the block of the service in the file of the challenge.
func (s *proofService) inject() string {
	if s.rucio != nil {
		return s.rucio.inject()
	}
	return fmt.Sprintf("inject: {by: fts, url: '%s/fts', auth: {token_file: '%s', insecure: true}}\n", s.url, s.token)
}

// newService starts a coordinator, and makes a token for weir and a certificate for Rucio.
func (p *proof) newService() *proofService {
	s := &proofService{proof: p, address: labtest.Address(p.T), token: filepath.Join(p.dir, "token"), cert: filepath.Join(p.dir, "rucio.pem")}
	s.url = "https://" + s.address
	ca := filepath.Join(p.dir, "ca.pem")
	key := filepath.Join(p.dir, "key.pem")
	p.tool("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=rucio", "-days", "2", "-keyout", key, "-out", ca)
	var both []byte
	for _, file := range []string{ca, key} {
		text, err := os.ReadFile(file)
		p.must(err)
		both = append(both, text...)
	}
	p.must(os.WriteFile(s.cert, both, 0o600))
	s.env = append(os.Environ(), "WEIR_CONFIG="+filepath.Join(p.dir, "weir.json"))
	s.argv = []string{p.weir, "coordinator", "--listen", s.address, "--state", filepath.Join(p.dir, "coordinator"), "--fts-endpoints", "local",
		"--approve-up-to", "all", "--client-ca", ca, "--name", "rucio=submit", "--while-stdin"}
	s.begin()
	p.tool("env", "WEIR_CONFIG="+filepath.Join(p.dir, "weir.json"), p.weir, "coordinator", "token", "--name", "challenge", "--role", "submit",
		"--out", s.token)
	return s
}

// begin starts the coordinator at the address that it had before.
func (s *proofService) begin() {
	var err error
	cmd := exec.Command(s.argv[0], s.argv[1:]...) //nolint:noctx // the end of its input ends it
	cmd.Stderr, cmd.Env = os.Stderr, s.env
	s.child, err = startChild(cmd, (*exec.Cmd).Start)
	s.must(err)
	s.Cleanup(s.kill)
}
