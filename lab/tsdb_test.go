package lab_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
)

// leftNothing fails t if processes or files of s are left after Stop.
func leftNothing(t *testing.T, s *lab.System) {
	t.Helper()
	pids := s.Pids()
	require.NoError(t, s.Stop())
	for _, pid := range pids {
		if lab.Alive(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
	if _, err := os.Stat(s.Dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", s.Dir, err)
	}
}

func TestPrometheusFetchesAndIsGone(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("lab_answer 42\n")) // the client may have disconnected
	}))
	defer page.Close()
	s := labtest.Start(t, lab.PrometheusConfig{Scrape: []string{strings.TrimPrefix(page.URL, "http://")}})
	for deadline := time.Now().Add(time.Minute); !strings.Contains(labtest.Get(t, s.URL+"/api/v1/query?query=lab_answer"), `"42"`); {
		if time.Now().After(deadline) {
			t.Fatal("it fetches nothing")
		}
		<-time.After(100 * time.Millisecond)
	}
	require.NoError(t, s.Restart(t.Context()))
	if text := labtest.Get(t, s.URL+"/api/v1/query?query="+url.QueryEscape("last_over_time(lab_answer[1h])")); !strings.Contains(text, `"42"`) {
		t.Errorf("forgotten when it was started again: %s", text)
	}
	leftNothing(t, s)
}

// post returns the server's response.
func post(t *testing.T, to, kind, body string) string {
	t.Helper()
	resp, err := http.Post(to, kind, strings.NewReader(body))
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(text)
}

func TestInfluxDBWritesAndIsGone(t *testing.T) {
	s := labtest.Start(t, lab.InfluxConfig{})
	for deadline := time.Now().Add(time.Minute); ; <-time.After(100 * time.Millisecond) {
		made := post(t, s.URL+"/query", "application/x-www-form-urlencoded", "q=CREATE+DATABASE+lab")
		if !strings.Contains(made, "error") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(made)
		}
	}
	if wrote := post(t, s.URL+"/write?db=lab", "text/plain", "answer,of=lab value=42 1000000000"); wrote != "" {
		t.Fatal(wrote)
	}
	if text := labtest.Get(t, s.URL+"/query?db=lab&q="+url.QueryEscape("SELECT value FROM answer")); !strings.Contains(text, "42") {
		t.Error(text)
	}
	leftNothing(t, s)
}
