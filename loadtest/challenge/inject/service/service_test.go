package service

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
	"weir/storage"

	"context"
)

// The reasons are those of FTS 3.12 to 3.14, of Rucio, which passes them on, and of weir's
// coordinator.
func TestJudge(t *testing.T) {
	for reason, want := range map[string]Verdict{
		"SOURCE [2] No such file or directory":     {storage.NotFound, Source, false, false},
		"SOURCE [2] HTTP 404 : File not found ":    {storage.NotFound, Source, false, false},
		"SOURCE CHECKSUM MISMATCH":                 {storage.Checksummed, Source, false, false},
		"DESTINATION [28] No space left on device": {storage.ServerFailed, Dest, false, false},

		"DESTINATION OVERWRITE [17] Destination file exists and overwrite": {storage.Other, Dest, false, true},
		"DESTINATION MAKE_PARENT [13] Permission denied":                   {storage.Denied, Dest, false, false},

		"TRANSFER [5] TRANSFER CHECKSUM MISMATCH USER_DEFINE and DST checksums are different": {storage.Checksummed, Dest, false, false},
		"TRANSFER [70] Communication error on send":                                           {storage.Reset, Unknown, false, false},
		"TRANSFER [110] TRANSFER Operation timed out":                                         {storage.Timeout, Unknown, false, false},

		"TRANSFER [111] Connection refused: davs://y:1094/f cannot be reached": {storage.Refused, Dest, false, false},

		"TRANSFER ERROR: Copy failed (3rd pull). Last attempt: HTTP 403 : Permission refused (destination)": {storage.Denied, Dest, false, false},

		"TRANSFER ERROR: Copy failed (3rd pull). Last attempt: HTTP 503 : busy": {storage.Busy, Unknown, false, false},

		"TRANSFER [13] Permission denied: x-1: the token of https://issuer expired at 2026-11-29": {storage.Denied, Source, true, false},
		"DESTINATION [13] the certificate has expired":                                            {storage.Denied, Dest, true, false},
		"TRANSFER [125] Operation canceled":                                                       {storage.Canceled, Unknown, false, false},
		"something else":                                                                          {storage.Other, Unknown, false, false},
		"":                                                                                        {storage.Other, Unknown, false, false},
	} {
		if got := Judge(reason, "davs://x:1/c", "davs://y:1094/c"); got != want {
			t.Errorf("%s: %+v, want %+v", reason, got, want)
		}
	}
}

// Each copy has one final report; times never go back and are never in the future.
func TestCopies(t *testing.T) {
	var all []inject.Report
	c := NewCopies(func(r inject.Report) { all = append(all, r) })
	if !c.Add(1) || c.Add(1) || c.Len() != 1 {
		t.Error("a copy is added once")
	}
	now := time.Now()
	c.Report(inject.Report{ID: 1, State: inject.Running, At: now.Add(-time.Second)})
	c.Report(inject.Report{ID: 1, State: inject.Running})
	c.Report(inject.Report{ID: 1, State: inject.Done, At: now.Add(-time.Hour), Begin: now.Add(time.Hour)})
	c.Fail(1, errors.New("late"))
	c.Cancel(2)
	if len(all) != 2 || c.Open(1) || !all[1].At.Equal(all[0].At) || all[1].Begin.After(all[1].At) {
		t.Errorf("%+v", all)
	}
	c.Add(3)
	c.Fail(3, &Error{Request: "POST /jobs", Status: 403, Message: "the token has expired", Err: storage.HTTPError(403)})
	if got := all[2]; got.Class != storage.Denied || !got.Expired || !strings.Contains(got.Reason, "403") {
		t.Errorf("%+v", got)
	}
}

// A journal keeps whole lines only, and refuses a file that is none.
func TestJournal(t *testing.T) {
	dir := t.TempDir()
	read := func() (lines []string) {
		j, err := OpenJournal(dir, "j", func(line []byte) error { lines = append(lines, string(line)); return nil })
		require.NoError(t, err)
		require.NoError(t, j.Append(len(lines)))
		require.NoError(t, j.Close())
		return lines
	}
	read()
	path := filepath.Join(dir, "j")
	require.NoError(t, os.WriteFile(path, append(require.File(t, path), "cut"...), 0o600))
	if got := append(read(), read()...); strings.Join(got, ",") != "0,0,1" {
		t.Errorf("%v", got)
	}
	_, err := OpenJournal(dir, "j", func([]byte) error { return errors.New("no") })
	if err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Error(err)
	}
}

// A request waits for the pause that the service has requested, unless it is urgent. The clock of
// the service is corrected, and health begins anew with each call.
func TestClient(t *testing.T) {
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		if n++; n == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		if r.Header.Get("X-Secret") == "" {
			t.Error("a request without credentials")
		}
	}))
	defer s.Close()
	c, err := NewClient(s.URL, storage.Credentials{}, func(_ context.Context, r *http.Request) error {
		r.Header.Set("X-Secret", "s")
		return nil
	})
	require.NoError(t, err)
	defer c.Close()
	begun := time.Now()
	_, _, err = c.Do(t.Context(), Request{Method: "GET", Path: "/a?secret=b"})
	if e := AsError(err); e.Status != 429 || e.Definite() || !errors.Is(err, storage.ErrBusy) || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	for _, urgent := range []bool{true, false} {
		if _, _, err := c.Do(t.Context(), Request{Method: "GET", Path: "/", Urgent: urgent}); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); !urgent && took < 900*time.Millisecond {
			t.Errorf("urgent %v: after %s", urgent, took)
		}
	}
	if h := c.Health(); h.Requests != 3 || h.Failed != 1 || !h.Busy {
		t.Errorf("%+v", h)
	}
	if h := c.Health(); h.Requests != 0 || h.Failed != 0 || h.Busy {
		t.Errorf("%+v", h)
	}
	if off := time.Since(c.Local(time.Now().Add(-time.Hour))).Abs(); off > time.Minute { // requests may take seconds on a busy machine
		t.Errorf("a time of the service is off by %s", off)
	}
	if _, err := NewClient("http://example.org", storage.Credentials{Token: "t"}, nil); err == nil {
		t.Error("a token would be sent without TLS")
	}
}

// A step of this machine's clock after the client was made moves no time of the service.
func TestSteppedClock(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})) // Date is that of its responses
	defer s.Close()
	c, err := NewClient(s.URL, storage.Credentials{}, func(context.Context, *http.Request) error { return nil })
	require.NoError(t, err)
	defer c.Close()
	c.wall = c.wall.Add(-time.Hour) // the clock was an hour behind until now
	_, _, err = c.Do(t.Context(), Request{Method: "GET", Path: "/"})
	require.NoError(t, err)
	if off := time.Since(c.Local(time.Now().Round(0))).Abs(); off > time.Minute { // by the monotonic clock
		t.Errorf("a time of the service is off by %s", off)
	}
}

// Paths are escaped, and the double slash of root is kept.
func TestURLOf(t *testing.T) {
	s := &challenge.Site{URL: "davs://x:1/c/", Root: "root://x:2//c"}
	for by, want := range map[challenge.Protocol]string{
		challenge.WebDAV: "davs://x:1/c/a%20b/%23c", challenge.XRootD: "root://x:2//c/a%20b/%23c",
	} {
		if got := URLOf(s, by, "a b/#c"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
