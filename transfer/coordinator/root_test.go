package coordinator

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/tpc"
	"weir/lab"
	"weir/lab/labtest"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/fts/rest"
)

// Files of root URLs are copied from, to and between real servers of every version. The copies are
// verified, create the folders of the destination and replace no file unless the job permits it.
// Missing and corrupt sources are reported.
func TestRootJobs(t *testing.T) {
	for _, version := range labtest.XRootDs() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			x := labtest.Start(t, lab.XRootDConfig{Version: version, Config: lab.Config{TLS: true}})
			y := labtest.Start(t, lab.XRootDConfig{Version: version, Config: lab.Config{TLS: true}, Authority: x})
			nginx := labtest.Start(t, lab.NginxConfig{})
			p := &ftsPair{start(t, Config{Approve: -1, SiteCA: x.CAFile, JobArea: tpc.Loopback}), x, y}
			u := p.ftsUser("rucio", access.MaySubmit)
			data := bytes.Repeat([]byte("by the XRootD protocol\n"), 300_000)
			for _, s := range []*lab.System{x, nginx} {
				for name, content := range map[string][]byte{"f": data, "g": data, "empty": {}, "corrupt": make([]byte, len(data)), "taken": data} {
					p.put(s, "a/"+name, content)
				}
			}
			p.put(y, "a/taken", []byte("another file"))
			p.put(y, "a/replaced", []byte("another file"))
			file := func(from, to, more string) string {
				return fmt.Sprintf(`{"sources":[%q],"destinations":[%q]%s}`, from, to, more)
			}
			sum := fmt.Sprintf(`,"filesize":%d,"checksum":"ADLER32:%s"`, len(data), adlerOf(data))
			ways := map[string][2]string{
				"root to root": {x.URLs["root"], y.URLs["root"]}, "roots to roots": {x.URLs["roots"], y.URLs["roots"]},
				"http to root": {nginx.URL, y.URLs["root"]}, "root to http": {x.URLs["root"], nginx.URL},
				"https to roots": {x.URLs["https"], y.URLs["roots"]},
			}
			for name, at := range ways {
				to, folder := y, strings.ReplaceAll(name, " ", "-")+"/deep"
				if name == "root to http" {
					to = nginx
				}
				dest := at[1] + "/" + folder
				id := u.submit(`{"files":[` + strings.Join([]string{file(at[0]+"/a/f", dest+"/f", sum), file(at[0]+"/a/g", dest+"/g", ""),
					file(at[0]+"/a/empty", dest+"/empty", ""), file(at[0]+"/a/corrupt", dest+"/corrupt", sum),
					file(at[0]+"/a/none", dest+"/none", "")}, ",") + `],"params":{"verify_checksum":"both","retry":1}}`)
				j := u.ended(id)
				if len(j.Files) != 5 {
					t.Fatalf("%s: %+v", name, j)
				}
				for i, want := range [][]byte{data, data, {}} {
					got, err := os.ReadFile(filepath.Join(to.Data, folder, []string{"f", "g", "empty"}[i]))
					if j.Files[i].State != "FINISHED" || err != nil || !bytes.Equal(got, want) {
						t.Errorf("%s: %+v: %d bytes, %v", name, j.Files[i], len(got), err)
					}
				}
				for i, reason := range map[int]string{3: "corrupt", 4: "SOURCE [2]"} {
					if f := j.Files[i]; f.State != "FAILED" || !strings.Contains(f.Reason, reason) {
						t.Errorf("%s: %+v", name, f)
					}
				}
				if left := hidden(t, filepath.Join(to.Data, folder)); len(left) > 0 {
					t.Errorf("temporaries are left: %v", left)
				}
			}
			taken := file(x.URLs["root"]+"/a/taken", y.URLs["root"]+"/a/taken", sum)
			if j := u.ended(u.submit(`{"files":[` + taken + `]}`)); j.State != "FAILED" || !strings.Contains(j.Files[0].Reason, "overwrite") {
				t.Errorf("%+v", j)
			}
			if got, err := os.ReadFile(filepath.Join(y.Data, "a/taken")); err != nil || string(got) != "another file" {
				t.Errorf("it was replaced: %d bytes, %v", len(got), err)
			}
			if j := u.ended(u.submit(`{"files":[` + taken + `],"params":{"overwrite":true}}`)); j.State != "FINISHED" {
				t.Errorf("%+v", j)
			}
			if got, err := os.ReadFile(filepath.Join(y.Data, "a/taken")); err != nil || !bytes.Equal(got, data) {
				t.Errorf("not replaced: %d bytes, %v", len(got), err)
			}
		})
	}
}

// Tokens of files authorize root URLs: by the login (ztn), which TLS protects, and with each
// request.
func TestRootTokens(t *testing.T) {
	t.Parallel()
	x := labtest.Start(t, lab.XRootDConfig{Auth: "ztn"})
	y := labtest.Start(t, lab.XRootDConfig{Auth: "ztn", Authority: x})
	p := &ftsPair{start(t, Config{Approve: -1, SiteCA: x.CAFile, JobArea: tpc.Loopback}), x, y}
	u := p.ftsUser("rucio", access.MaySubmit)
	data := bytes.Repeat([]byte("with tokens\n"), 10_000)
	p.put(x, "c/f", data)
	p.put(x, "c/g", data)
	read, write, wrong := p.fileTokens()
	file := func(name, source string) string {
		return fmt.Sprintf(`{"sources":["%s/c/%s"],"destinations":["%s/c/%[2]s"],"source_tokens":[%[4]q],"destination_tokens":[%[5]q]}`,
			x.URLs["roots"], name, y.URLs["roots"], source, write)
	}
	j := u.ended(u.submit(`{"files":[` + file("f", read) + "," + file("g", wrong) + `],"params":{"verify_checksum":"both","retry":-1}}`))
	if j.Files[0].State != "FINISHED" || j.Files[1].State != "FAILED" || !strings.Contains(j.Files[1].Reason, "Permission denied") ||
		strings.Contains(j.Files[1].Reason, wrong) {
		t.Errorf("%+v", j)
	}
	if got, err := os.ReadFile(filepath.Join(y.Data, "c/f")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// Servers that forward the token of a login (ofs.tpc fcreds) copy from each other with the token
// for the destination, if the source accepts this token as well. If it does not, the bytes pass
// through the coordinator with a token for each end.
func TestRootTokensForwarded(t *testing.T) {
	for _, version := range labtest.XRootDs() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			const forwards = "ofs.tpc fcreds ztn =BEARER_TOKEN_FILE pgm /usr/bin/xrdcp --server\n"
			iam := labtest.StartIAM(t, labtest.IAMConfig{})
			conf := lab.XRootDConfig{Version: version, Auth: "ztn", Extra: forwards, Issuer: iam.URL, Keys: iam.Keys()}
			x := labtest.Start(t, conf)
			conf.Authority = x
			y := labtest.Start(t, conf)
			p := &ftsPair{start(t, Config{Approve: -1, SiteCA: x.CAFile, JobArea: tpc.Loopback}), x, y}
			u := p.ftsUser("rucio", access.MaySubmit)
			data := bytes.Repeat([]byte("with one token\n"), 10_000)
			p.put(x, "c/f", data)
			read := iam.Token("rucio", "storage.read:/", nil)
			for i, c := range []struct {
				scope string
				mode  transfer.Mode
			}{{"storage.modify:/ storage.read:/", transfer.Third}, {"storage.modify:/d storage.read:/d", transfer.Streamed}} {
				dest := fmt.Sprintf("d/%d", i)
				id := u.submit(fmt.Sprintf(`{"files":[{"sources":["%s/c/f"],"destinations":["%s/%s"],"source_tokens":[%q],
					"destination_tokens":[%q]}],"params":{"retry":-1}}`, x.URLs["roots"], y.URLs["roots"], dest, read,
					iam.Token("rucio", c.scope, nil)))
				if j := u.ended(id); j.State != "FINISHED" {
					t.Errorf("%+v", j)
				}
				if got, err := os.ReadFile(filepath.Join(y.Data, dest)); err != nil || !bytes.Equal(got, data) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
				jobs, err := p.queue.Read.Jobs(t.Context(), []string{id})
				if err != nil || len(jobs) != 1 {
					t.Fatalf("%d jobs, %v", len(jobs), err)
				}
				attempts, err := p.Client.Attempts(t.Context(), jobs[0].Parts[0].ID, 0, 0)
				if err != nil || len(attempts) != 1 || attempts[0].Mode != c.mode {
					t.Errorf("%s: %+v, %v", dest, attempts, err)
				}
			}
		})
	}
}

// Servers with certificates admit the coordinator with the proxy of a job. A server that forwards
// delegated proxies (ofs.tpc fcreds) fetches the file itself; for other servers the bytes pass
// through the coordinator.
func TestRootProxies(t *testing.T) {
	for _, version := range labtest.XRootDs() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			conf := lab.XRootDConfig{Version: version, Auth: "gsi", Delegation: true}
			x := labtest.Start(t, conf)
			conf.Authority = x
			y := labtest.Start(t, conf)
			conf.Delegation = false
			z := labtest.Start(t, conf)
			p := &ftsPair{start(t, Config{Approve: -1, SiteCA: x.CADir, CA: x.CADir, JobArea: tpc.Loopback,
				Names: map[string][]string{labUser: {access.MaySubmit}}}), x, y}
			u := p.gridUserOf(x.Proxy, x.Proxy)
			if status, text := u.delegate(nil); status != http.StatusCreated {
				t.Fatalf("%d %s", status, text)
			}
			data := bytes.Repeat([]byte("with a proxy\n"), 100_000)
			p.put(x, "c/f", data)
			file := func(to *lab.System, name string) string {
				return fmt.Sprintf(`{"sources":["%s/c/f"],"destinations":["%s/%s"],"checksum":"ADLER32:%s"}`, x.URL, to.URL, name, adlerOf(data))
			}
			for to, want := range map[*lab.System]transfer.Mode{y: transfer.Third, z: transfer.Streamed} {
				id := u.submit(file(to, "deep/f"))
				if j := u.ended(id); j.State != "FINISHED" {
					t.Errorf("%s: %+v", want, j)
				}
				if got, err := os.ReadFile(filepath.Join(to.Data, "deep/f")); err != nil || !bytes.Equal(got, data) {
					t.Errorf("%s: %d bytes, %v", want, len(got), err)
				}
				if left := hidden(t, filepath.Join(to.Data, "deep")); len(left) > 0 {
					t.Errorf("%s: temporaries are left: %v", want, left)
				}
				jobs, err := p.queue.Read.Jobs(t.Context(), []string{id})
				if err != nil || len(jobs) != 1 {
					t.Fatalf("%d jobs, %v", len(jobs), err)
				}
				attempts, err := p.Client.Attempts(t.Context(), jobs[0].Parts[0].ID, 0, 0)
				if err != nil || len(attempts) != 1 || attempts[0].Mode != want {
					t.Errorf("%s: %+v, %v", want, attempts, err)
				}
			}
			if status, text := u.ask("DELETE", "/delegation/"+u.whoami().Delegation, nil); status != http.StatusNoContent {
				t.Errorf("%d %s", status, text)
			}
			if j := u.ended(u.submit(file(y, "without"))); j.State != "FAILED" || !strings.Contains(j.Files[0].Reason, "gsi") {
				t.Errorf("without a proxy: %+v", j)
			}
		})
	}
}

// FTS's own client submits root URLs. A site with a root URL is named and limited, and datasets are
// copied from and to it.
func TestRootClient(t *testing.T) {
	t.Parallel()
	bin := labtest.FTS(t)
	x, y := labtest.Start(t, lab.XRootDConfig{}), labtest.Start(t, lab.XRootDConfig{})
	h := start(t, Config{Approve: -1, JobArea: tpc.Loopback})
	p := &ftsPair{h, x, y}
	u := p.ftsUser("alice", access.MaySubmit)
	data := bytes.Repeat([]byte("fts client\n"), 10_000)
	p.put(x, "b/f", data)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(bin, "python3"), filepath.Join(bin, "fts-rest-transfer-submit"), "-s", p.URL()+rest.Path,
		"--insecure", "--fts-access-token", u.raw, "--src-access-token", "unused", "--dst-access-token", "unused", "-b", "-i", "1",
		"--compare-checksum", x.URLs["root"]+"/b/f", y.URLs["root"]+"/b/f", "ADLER32:"+adlerOf(data))
	c.Env = append(os.Environ(), "HOME="+t.TempDir(), "PYTHONWARNINGS=ignore")
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Job finished with state FINISHED") {
		t.Errorf("%v\n%s", err, out)
	}
	if got, err := os.ReadFile(filepath.Join(y.Data, "b/f")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	h.addSite("X", x.URLs["root"])
	h.addSite("Y", y.URLs["root"])
	h.stock("/run1", "X", x, 5, 100_000)
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/run1", To: "Y"})
	if err != nil {
		t.Fatal(err)
	}
	if q = h.WaitEnd(q.ID); q.Status != transfer.Completed {
		t.Errorf("%+v", q)
		h.Log(q.ID)
	}
}

// Servers that can copy from each other (ofs.tpc) do so. The coordinator reads from and writes to
// other servers.
func TestRootThirdParty(t *testing.T) {
	t.Parallel()
	const copies = "ofs.tpc ttl 60 120 pgm /usr/bin/xrdcp --server\n"
	x, y := labtest.Start(t, lab.XRootDConfig{Extra: copies}), labtest.Start(t, lab.XRootDConfig{Extra: copies})
	plain := labtest.Start(t, lab.XRootDConfig{})
	h := start(t, Config{Approve: -1})
	for name, s := range map[string]*lab.System{"X": x, "Y": y, "P": plain} {
		h.addSite(name, s.URLs["root"])
	}
	for dest, want := range map[string]transfer.Mode{"Y": transfer.Third, "P": transfer.Streamed} {
		dataset, to := "/to"+dest, map[string]*lab.System{"Y": y, "P": plain}[dest]
		all := h.stock(dataset, "X", x, 5, 3_000_000)
		q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: dataset, To: dest})
		if err != nil {
			t.Fatal(err)
		}
		if q = h.WaitEnd(q.ID); q.Status != transfer.Completed {
			t.Errorf("%+v", q)
			h.Log(q.ID)
		}
		if modes := h.modes(q.ID); len(modes) != 1 || modes[0] != want {
			t.Errorf("to %s: modes %v", dest, modes)
			h.Log(q.ID)
		}
		for i, data := range all {
			if got, err := os.ReadFile(filepath.Join(to.Data, dataset, fmt.Sprintf("f%d", i))); err != nil || !bytes.Equal(got, data) {
				t.Errorf("file %d: %d bytes, %v", i, len(got), err)
			}
		}
		if left := hidden(t, filepath.Join(to.Data, dataset)); len(left) > 0 {
			t.Errorf("temporaries are left: %v", left)
		}
	}
}
