package rigs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"weir/internal/tpc"
	"weir/lab/labtest"
	"weir/transfer/access"
	"weir/transfer/coordinator"
	"weir/transfer/fts/rest"
	"weir/transfer/schedule"
	"weir/transfer/transfertest"
)

// smallDisk prepares a small file system for C, and lets copies stay.
func smallDisk(g *grid) {
	dir := filepath.Join(g.dir, "disk-C")
	g.must(os.Mkdir(dir, 0o755))
	if out, err := exec.CommandContext(g.ctx, "mount", "-t", "tmpfs", "-o", "size=12m", "weir-rig", dir).CombinedOutput(); err != nil {
		g.cannot("no file system in memory: %s", out)
	}
	g.ends(func() error { return exec.Command("umount", "-l", dir).Run() })
	g.extra["C"] = siteSpec{Dir: dir}
}

// failuresOfC expects failures at C, at the right end, and no others.
func failuresOfC(g *grid, r *ran) {
	for i := range r.Challenge.Links {
		l := &r.Challenge.Links[i]
		for _, f := range l.Failures {
			right := l.Source == "C" && f.End == "source" || l.Dest == "C" && f.End == "destination"
			g.expect(right || f.Copies <= 2, "%s: %d failures of class %s at the %s", l.name(), f.Copies, f.Class, f.End)
		}
		if l.Source == "C" || l.Dest == "C" {
			g.expect(l.Failed > 0, "%s: failures expected", l.name())
		}
		if l.Level < held {
			g.expect(l.Cause != nil && l.Cause.is("* C"), "%s: C expected, is %v", l.name(), l.Cause)
		}
	}
}

// refusedAtC expects that C limits AC, BC or both.
func refusedAtC(g *grid, r *ran) {
	below := 0
	for i := range r.Challenge.Links {
		l := &r.Challenge.Links[i]
		if l.Dest != "C" || l.Level >= held {
			continue
		}
		below++
		g.expect(l.Cause != nil && l.Cause.is("destination C door|destination C refuses"), "%s: C refuses expected, is %v", l.name(), l.Cause)
	}
	g.expect(below > 0, "AC or BC below its target expected")
}

// away kills C for a minute.
func away(g *grid, r *running) {
	r.at(2, 40*time.Second)
	g.site("C").kill()
	g.sleep(time.Minute)
	g.must(g.site("C").begin())
}

// hang stops a site for a time.
func hang(site string, from, length time.Duration) func(g *grid, r *running) {
	return func(g *grid, r *running) {
		r.at(2, from)
		g.site(site).signal(syscall.SIGSTOP)
		g.sleep(length)
		g.site(site).signal(syscall.SIGCONT)
	}
}

func tokenSites() map[string]siteSpec {
	all := map[string]siteSpec{}
	for i := range gridSites {
		all[siteName(i)] = siteSpec{Tokens: true}
	}
	return all
}

const tokenLife = 20 * time.Second

// newToken writes a token that ends after its life.
func (g *grid) newToken() {
	part := func(v any) string {
		b, err := json.Marshal(v)
		g.must(err)
		return base64.RawURLEncoding.EncodeToString(b)
	}
	raw := part(map[string]string{"alg": "none"}) + "." + part(map[string]int64{"exp": time.Now().Add(tokenLife).Unix()}) + ".x"
	path := filepath.Join(g.dir, "token")
	g.must(os.WriteFile(path+".new", []byte(raw), 0o600))
	g.must(os.Rename(path+".new", path))
}

// firstToken writes the token with which the challenge begins.
func firstToken(g *grid) {
	g.newToken()
	g.auth = ", auth: {method: token, token_file: '" + filepath.Join(g.dir, "token") + "', insecure: true}"
}

// issue renews the token: in time, then after its end, then not at all; and again at the end, so
// that files can be removed.
func issue(g *grid, r *running) {
	begun := time.Now()
	for g.ctx.Err() == nil && time.Since(begun) < 150*time.Second {
		every := tokenLife / 2
		if time.Since(begun) > time.Minute {
			every = tokenLife + 5*time.Second
		}
		g.sleep(every)
		g.newToken()
	}
	r.at(2, 170*time.Second)
	for g.ctx.Err() == nil && r.cmd.Process.Signal(syscall.Signal(0)) == nil && time.Since(begun) < 330*time.Second {
		g.newToken()
		g.sleep(tokenLife / 2)
	}
}

// starve limits the CPU time of weir from a time of the second stage on, to microseconds in each
// second.
func starve(from time.Duration, quota int) func(g *grid, r *running) {
	return func(g *grid, r *running) {
		group := fmt.Sprintf("/sys/fs/cgroup/cpu/weir-rig-%d-%d", os.Getpid(), r.cmd.Process.Pid)
		if err := os.Mkdir(group, 0o755); err != nil {
			g.cannot("no control group for CPU time: %v", err)
		}
		g.ends(func() error { return os.Remove(group) })
		write := func(name, value string) { g.must(os.WriteFile(filepath.Join(group, name), []byte(value), 0o644)) }
		r.at(2, from)
		write("cpu.cfs_period_us", "1000000")
		write("cpu.cfs_quota_us", strconv.Itoa(quota))
		write("cgroup.procs", strconv.Itoa(r.cmd.Process.Pid))
		r.at(2, 175*time.Second) // the rest is for the removal of files
		write("cpu.cfs_quota_us", "-1")
	}
}

// moveClock moves the times of copies, except those of their ends, as a service with a clock that is
// slow reports them, and analyzes the run again.
func moveClock(g *grid, r *ran) {
	moved := filepath.Join(g.dir, "moved")
	g.must(os.CopyFS(moved, os.DirFS(r.dir)))
	path := filepath.Join(moved, "transfers.jsonl")
	text, err := os.ReadFile(path)
	g.must(err)
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		var v map[string]json.RawMessage
		g.must(json.Unmarshal(line, &v))
		for _, key := range []string{"begin", "last_byte"} {
			var at time.Time
			if json.Unmarshal(v[key], &at) == nil && !at.IsZero() {
				v[key], err = json.Marshal(at.Add(-90 * time.Second))
				g.must(err)
			}
		}
		b, err := json.Marshal(v)
		g.must(err)
		out.Write(append(b, '\n'))
	}
	g.must(os.WriteFile(path, out.Bytes(), 0o644))
	_ = os.Remove(filepath.Join(moved, "findings.json"))
	out2, err := exec.CommandContext(g.ctx, g.weir, "report", moved).CombinedOutput()
	f, err2 := readFindings(moved)
	g.must(err2)
	again := &ran{findings: f, title: "moved", dir: moved, text: fmt.Sprintf("%s %v", out2, err)}
	g.links(again, "CD CA", "source C -|source C disk")
	g.expect(f != nil && f.Challenge != nil && f.Challenge.Clock != nil, "a warning about clocks expected")
}

// oneAtOnce starts a coordinator that makes one copy at once for each link.
func oneAtOnce(g *grid) {
	conf := coordinator.Config{State: filepath.Join(g.dir, "coordinator"), Listen: labtest.Address(g.T), Approve: -1, JobArea: tpc.Network,
		Rules: schedule.Rules{Min: 1, Max: 1}}
	g.must(os.Mkdir(conf.State, 0o700))
	s := transfertest.Start(g.T, func(ctx context.Context) (transfertest.Coordinator, error) { return coordinator.Open(ctx, conf) })
	path := filepath.Join(g.dir, "token")
	g.must(os.WriteFile(path, []byte(s.NewToken("challenge", access.MaySubmit)), 0o600))
	g.more = "inject: {by: fts, url: '" + s.Address.URLs[0] + rest.Path + "', auth: {token_file: '" + path + "', insecure: true}}\n"
}

// foreignFiles are the files that are left, without the sources of a site that was away.
func foreignFiles(left []string) []string {
	return slices.DeleteFunc(left, func(path string) bool { return path[0] == 'C' })
}
