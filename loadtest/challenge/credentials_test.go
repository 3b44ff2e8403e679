package challenge

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/document"
	"weir/internal/require"
	"weir/storage"
	"weir/storage/gridcert/gridcerttest"
)

// tokenUntil returns a token that ends at a time. Nothing here checks its signature.
func tokenUntil(at time.Time) string {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	return part(`{"alg":"none"}`) + "." + part(fmt.Sprintf(`{"exp":%d}`, at.Unix())) + "." + part("x")
}

func TestCredentials(t *testing.T) {
	now := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	file := filepath.Join(t.TempDir(), "token")
	for _, c := range []struct {
		name          string
		until         time.Duration // from now; the challenge takes 10 minutes
		variable      bool
		warned, fatal string
	}{
		{"lasts", time.Hour, true, "", ""},
		{"in a variable", 4 * time.Minute, true, "", "ends at 2027-03-01 12:04:00 UTC, 6m before the end"},
		{"in a file", 4 * time.Minute, false, "renew it in its file in time", ""},
		{"file has ended", -time.Minute, false, "", "ended at 2027-03-01 11:59:00 UTC"},
		{"variable has ended", -time.Minute, true, "", "get a new one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(file, []byte(tokenUntil(now.Add(c.until))+"\n"), 0o600))
			t.Setenv("CHALLENGE_TOKEN", tokenUntil(now.Add(c.until)))
			challenge := valid(t, whole)
			for i := range challenge.Sites {
				challenge.Sites[i].Auth = storage.Auth{TokenFile: file}
				if c.variable {
					challenge.Sites[i].Auth = storage.Auth{TokenVariable: "CHALLENGE_TOKEN"}
				}
			}
			warnings, err := challenge.Credentials(now, true)
			text := ""
			if err != nil {
				text = err.Error()
				const both = "sites.0.auth (A), sites.1.auth (B): "
				if all := (document.Mistakes{}); !errors.As(err, &all) || len(all) != 1 || !strings.HasPrefix(text, both) {
					t.Errorf("the error is not one mistake of both sites: %v", err)
				}
			}
			if (text == "") != (c.fatal == "") || !strings.Contains(text, c.fatal) {
				t.Errorf("the error is %q, not %q", text, c.fatal)
			}
			if warned := strings.Join(warnings, "\n"); (warned == "") != (c.warned == "") || !strings.Contains(warned, c.warned) {
				t.Errorf("the warnings are %q, not %q", warned, c.warned)
			}
		})
	}
}

func TestProxies(t *testing.T) {
	user := gridcerttest.NewCA(t, "CA").User(t)
	now := time.Now()
	for until, want := range map[time.Duration]string{
		5 * time.Minute: "renew it in its file in time", -time.Minute: "ended at", 5 * time.Hour: "",
	} {
		c := valid(t, whole)
		c.Sites[1].Auth = storage.Auth{ProxyFile: gridcerttest.ProxyFile(t, user.Proxy(t, now.Add(until)), user)}
		warnings, err := c.Credentials(now, true)
		text := strings.Join(warnings, "")
		if until < 0 {
			text = fmt.Sprint(err)
		}
		if (err != nil) != (until < 0) || (text == "") != (want == "") || !strings.Contains(text, want) {
			t.Errorf("a proxy that ends in %v: warnings %v, error %v", until, warnings, err)
		}
	}
}

func TestUnreadableCredentials(t *testing.T) {
	c := valid(t, whole)
	for i := range c.Sites {
		c.Sites[i].Auth = storage.Auth{TokenFile: filepath.Join(t.TempDir(), "missing")}
	}
	warnings, err := c.Credentials(time.Now(), false)
	require.NoError(t, err)
	if len(warnings) != 2 || !strings.Contains(warnings[0], "cannot be read") {
		t.Errorf("warnings %v", warnings)
	}
	if _, err := c.Credentials(time.Now(), true); err == nil || !strings.Contains(err.Error(), "write it there, or correct the path") {
		t.Errorf("begun here: %v", err)
	}
	if got := owners([]string{"A", "B", "C", "D", "E", "F"}); got != "A, B, C, 3 more sites" {
		t.Error(got)
	}
}
