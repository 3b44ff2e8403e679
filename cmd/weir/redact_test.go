package main

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/results"
)

// Secrets of the tests below, as they are encoded in a URL.
const (
	secretSig    = "s3cr3t%2Bsig%3D42"
	secretWrong  = "wr0ngsignature77"
	secretJWT    = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJzM2NyM3QifQ.c2lnbmF0dXJl"
	secretAPIKey = "k3y-of-the-api-99"
	secretAmz    = "AKIAs3cr3tAMZ0011/20261123/cern/s3/aws4_request"
	secretOther  = "plain8word"
	secretBare   = "b4retokenwithoutname"
	secretPage   = "p4getokenofmetrics"
	secretUser   = "us3rinfopassword"
	secretList   = "l1stsignature55"
)

// noSecrets fails t if a text contains one of the secrets in any of its forms.
func noSecrets(t *testing.T, where, text string) {
	t.Helper()
	for _, s := range []string{secretSig, secretWrong, secretJWT, secretAPIKey, secretAmz, secretOther, secretBare, secretPage,
		secretUser, secretList} {
		plain, err := url.QueryUnescape(s)
		require.NoError(t, err)
		for _, form := range []string{s, plain, url.QueryEscape(plain), url.PathEscape(plain)} {
			if i := strings.Index(text, form); i >= 0 {
				t.Errorf("%s has the secret %s: %.300q", where, form, text[max(0, i-200):])
				return
			}
		}
	}
}

// noSecretsIn calls noSecrets for all files below dir, and for their names.
func noSecretsIn(t *testing.T, dir string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		noSecrets(t, path, path+string(b))
		return err
	}); err != nil {
		t.Error(err)
	}
}

// signed serves files below /data to clients that have all the secrets. Its refusals repeat the
// secrets of the request.
func signed(t *testing.T) (target string, granted *atomic.Int64) {
	t.Helper()
	granted = new(atomic.Int64)
	body := strings.Repeat("x", 4096)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q, sig := r.URL.Query(), "s3cr3t+sig=42"
		ok := q.Get("sig") == sig && q.Get("jwt") == secretJWT && q.Get("apikey") == secretAPIKey && q.Get("X-Amz-Signature") == secretAmz &&
			q.Get("x") == secretOther && q.Has(secretBare) && q.Get("format") == "raw"
		switch {
		case r.URL.Path == "/metrics":
			http.Error(w, "the page refuses "+r.URL.RawQuery+" and "+q.Get("key"), http.StatusForbidden)
		case !ok:
			http.Error(w, fmt.Sprintf("signature %s (%s) is wrong, token %s, see %s", q.Get("sig"), url.QueryEscape(q.Get("sig")), q.Get("jwt"),
				r.URL), http.StatusForbidden)
		case strings.HasSuffix(r.URL.Path, "/moved"):
			http.Redirect(w, r, "http://127.0.0.1:1/gone?sig="+url.QueryEscape(sig), http.StatusFound)
		default:
			granted.Add(1)
			_, _ = w.Write([]byte(body))
		}
	}))
	t.Cleanup(s.Close)
	return s.URL + "/data?format=raw&sig=" + secretSig + "&jwt=" + secretJWT + "&apikey=" + secretAPIKey + "&X-Amz-Signature=" + secretAmz +
		"&x=" + secretOther + "&" + secretBare, granted
}

// No secret of a URL leaves the process, whether a run succeeds or fails. Neither its directory,
// nor its output, nor the output of other commands for this run contains a secret.
func TestSecretsStay(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	target, granted := signed(t)
	wrong := strings.Replace(target, secretSig, secretWrong, 1)
	gone := strings.Replace(target, strings.SplitN(target, "/", 4)[2], "127.0.0.1:1", 1)
	dir := t.TempDir()
	list := filepath.Join(dir, "list.txt")
	require.NoError(t, os.WriteFile(list, []byte("a.dat 4096\nb.dat?sig="+secretList+" 4096\nmoved\n"), 0o600))
	page := strings.SplitAfter(target, "/data")[0] + "/../metrics?key=" + secretPage
	hosts := "hosts=[{name: h, role: server, node_exporter: '" + strings.Replace(page, "/data/..", "", 1) + "'}]"
	load := []string{"--clients", "2", "--duration", "1s", "--set", "load={ramp: 0, warmup: 0, graceful_stop: 1s}", "--set", "files.list=" +
		list, "--set", "workload.timeout=2s"}
	for name, c := range map[string]struct {
		args []string
		ran  bool
	}{
		"plan":       {args: append([]string{"plan", "--target", target, "--set", hosts}, load...)},
		"plan json":  {args: append([]string{"plan", "--json", "--target", target, "--set", hosts}, load...)},
		"run":        {args: append([]string{"run", "--target", target, "--set", hosts}, load...), ran: true},
		"stream":     {args: append([]string{"run", "--json-stream", "--target", target}, load...), ran: true},
		"quiet json": {args: append([]string{"run", "--json", "-q", "--target", target}, load...), ran: true},
		"processes":  {args: append([]string{"run", "--processes", "2", "--target", target}, load...), ran: true},
		"refused":    {args: append([]string{"run", "--target", wrong}, load...), ran: true},
		"no server":  {args: append([]string{"run", "--target", gone}, load...), ran: true},
		"listing":    {args: []string{"run", "--target", wrong, "--clients", "1", "--duration", "1s"}},
		"campaign":   {args: append([]string{"run", "--target", target, "--set", "matrix.workload.session=[kept, fresh]"}, load...), ran: true},
		"targets": {args: append([]string{"run", "--set", "matrix={service: [{name: one, target: '" + target + "'}, {name: two, target: '" +
			wrong + "'}]}"}, load...)},
		"find": {args: []string{"find", target, "--time", "3s", "--duration", "500ms", "--max", "2", "--set", "files.list=" + list},
			ran: true},
		"password":  {args: append([]string{"run", "--target", strings.Replace(target, "://", "://alice:"+secretUser+"@", 1)}, load...)},
		"authz":     {args: append([]string{"run", "--target", target + "&authz=Bearer%20" + secretOther}, load...)},
		"fragment":  {args: append([]string{"run", "--target", target + "#" + secretOther}, load...)},
		"no scheme": {args: append([]string{"run", "--target", strings.TrimPrefix(target, "http:")}, load...)},
		"export": {args: append([]string{"run", "--target", target, "--influx", "http://127.0.0.1:1/write?db=weir&key=" + secretUser},
			load...), ran: true},
		"URL in the list": {args: append([]string{"run", "--target", target, "--set", "files.list=" +
			writeTemp(t, strings.Split(target, "?")[0]+"/a.dat?sig="+secretList+"\n")}, load[:len(load)-4]...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "run")
			if c.args[0] != "plan" {
				c.args = append(c.args, "--out", out)
			}
			code, said := weir(t, c.args...)
			noSecrets(t, "the output", said)
			if made := exists(filepath.Join(out, results.AboutFile)) || exists(filepath.Join(out, "campaign.json")); made != c.ran &&
				name != "targets" && name != "listing" {
				t.Fatalf("exit code %d; a run directory: %v\n%s", code, made, said)
			}
			if !exists(out) {
				return
			}
			noSecretsIn(t, out)
			for _, args := range [][]string{{"report", out}, {"report", out, "--json"},
				{"export", out, "--influx", page}, {"clean", out}} {
				_, said := weir(t, args...)
				noSecrets(t, strings.Join(args[:1], " "), said)
			}
		})
	}
	t.Cleanup(func() {
		if granted.Load() == 0 {
			t.Error("no run had the secrets that it was given")
		}
	})
}

func writeTemp(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "list.txt")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// A run whose target has secrets can be resumed only if the same target is given again. A run
// without secrets is resumed without a target.
func TestResumeWithSecrets(t *testing.T) {
	t.Parallel()
	target, granted := signed(t)
	dir := t.TempDir()
	list, out := filepath.Join(dir, "list.txt"), filepath.Join(dir, "run")
	require.NoError(t, os.WriteFile(list, []byte("a.dat 4096\nb.dat 4096\n"), 0o600))
	p := started(t, "run", "--target", target, "--clients", "1,2", "--duration", "2s", "--set", "load={ramp: 0, warmup: 0}", "--set",
		"files.list="+list, "--set", "workload.think=5ms", "--out", out)
	untilHeld(t, out, 1)
	p.kill(t)
	for _, args := range [][]string{{}, {"--target", strings.Replace(target, "/data", "/other", 1)},
		{"--target", strings.SplitN(target, "?", 2)[0]}} {
		if code, said := weir(t, append([]string{"run", "--resume", out}, args...)...); code != exitUsage {
			t.Errorf("%v: exit code %d\n%s", args, code, said)
		} else {
			noSecrets(t, "the refusal", said)
		}
	}
	before := granted.Load()
	code, said := weir(t, "run", "--resume", out, "--target", target)
	if code != exitFine && code != exitInvalid || granted.Load() == before {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	noSecrets(t, "the output", said)
	noSecretsIn(t, out)
	if f := findings(t, out); len(f.Curve) != 2 || f.Curve[1].Done == 0 || f.Curve[1].Errors > 0 {
		t.Errorf("%+v", f.Curve)
	}
}
