package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/transfer"
	"weir/transfer/notify"
	"weir/transfer/trial"
)

// A hook is a webhook that may fail.
type hook struct {
	*httptest.Server
	mu    sync.Mutex
	works bool
	tries int
	got   []notify.Message // messages of the requests that succeeded
}

func newHook(t *testing.T) *hook {
	h := &hook{}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tries++
	var m notify.Message
	if err != nil || json.Unmarshal(text, &m) != nil || m.ID != r.Header.Get("webhook-id") || !h.works {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	h.got = append(h.got, m)
}

func (h *hook) state() (tries int, got []notify.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tries, append([]notify.Message{}, h.got...)
}

// repair makes the hook accept messages from now on.
func (h *hook) repair() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.works = true
}

// Notifications are sent for requests that end as partial, failed, cancelled and rejected, and for
// completed requests only to the target that requests them. Messages that could not be delivered
// before a kill -9 are delivered after it.
func TestNotifications(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	for _, database := range []string{"SQLite", "PostgreSQL"} {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			o := trial.Options{Sites: []trial.Site{{Name: "A"}, {Name: "C"}}}
			if database == "PostgreSQL" {
				o.DB = labtest.Start(t, lab.PostgreSQLConfig{Careless: true}).URL
			}
			h, dir := newHook(t), t.TempDir()
			put(t, dir, "hook.secret", "a secret of the webhook")
			o.Coordinator = []string{"--config", put(t, dir, "c.yaml", fmt.Sprintf(`
notify:
  - {name: hook, webhook: "%s/path", private: true, secret_file: hook.secret}
  - {name: program, on: [completed], command: [sh, -c, 'cat >> "$0"', "%s"]}
  - {name: operators, on: [partial], mail: [ops@example.org], sendmail: [sh, -c, 'cat >> "$0"', "%s"]}
`, h.URL, filepath.Join(dir, "completed"), filepath.Join(dir, "mail")))}
			r := rooms(t, o)
			files := trial.Files("/store/run1", 10, 1000)
			r.fills("A", "/store/run1", files...)
			r.completes(r.submits(transfer.Submission{Dataset: "/store/run1", To: "C", Files: []string{files[0].Name}}))
			for _, f := range files[3:5] {
				require.NoError(t, os.Remove(filepath.Join(r.Root("A"), f.Name)))
			}
			partial := r.submits(transfer.Submission{Dataset: "/store/run1", To: "C", Tries: 1})
			if m := r.ends(partial); m.Request.Status != transfer.Partial {
				t.Fatal(m.Request.Status)
			}
			failed := r.submits(transfer.Submission{Dataset: "/store/run1", To: "C", Tries: 1, Files: []string{files[3].Name}})
			r.ends(failed)
			r.wants(exitFine, words("transfer submit /store/run1 --to C"))
			r.wants(exitFine, words("transfer reject 4"))
			require.Eventually(t, "three attempts", func() bool { tries, _ := h.state(); return tries >= 3 })
			require.Eventually(t, "the mail", func() bool {
				return contains(filepath.Join(dir, "mail"), "Subject: weir: request 2 ended as partial: 8 of 10")
			})
			r.wants(exitFine, words("transfer notifications"), "the server answered 500", "next attempt", "delivered")
			require.NoError(t, r.Coordinator().Kill())
			h.repair()
			require.NoError(t, r.Coordinator().Start(t.Context()))
			seen := map[string]notify.Message{}
			require.Eventually(t, "three messages", func() bool {
				_, got := h.state()
				for _, m := range got {
					seen[m.ID] = m
				}
				return len(seen) >= 3
			})
			types := map[string]int64{}
			for _, m := range seen {
				types[m.Type] = m.Request.ID
				if m.Type == "request.partial" && (len(m.Files) != 2 || m.Files[0].Name != files[3].Name || m.Files[0].Reason == "" ||
					m.Request.Count.Done+m.Request.Count.Skipped != 8 || m.Request.Rate <= 0) {
					t.Errorf("%+v", m)
				}
			}
			if len(types) != 3 || types["request.partial"] != partial || types["request.failed"] != failed || types["request.rejected"] != 4 {
				t.Errorf("%v", types)
			}
			require.Eventually(t, "the message of a completed request", func() bool {
				return contains(filepath.Join(dir, "completed"), `"type":"request.completed"`)
			})
			text, err := os.ReadFile(filepath.Join(dir, "completed"))
			if err != nil || strings.Count(string(text), "\n") != 1 {
				t.Errorf("%s, %v", text, err)
			}
			r.wants(exitFine, words("transfer notify-test hook"), "delivered", "webhook")
			require.Eventually(t, "delivered notifications", func() bool {
				_, out, _ := r.weir("transfer", "notifications", "--json")
				var list struct{ Notifications []transfer.Notification }
				require.NoError(t, json.Unmarshal([]byte(out), &list))
				done := 0
				for _, n := range list.Notifications {
					if n.Delivered {
						done++
					}
				}
				return done == 5 && len(list.Notifications) == 5
			})
		})
	}
}

// notify-test reports for each target whether it works. If there are no targets, it reports that.
func TestNotifyTest(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	file := put(t, t.TempDir(), "c.yaml", "notify:\n  - {name: broken, command: [\"false\"]}\n  - {name: good, command: [\"true\"]}\n")
	r := rooms(t, trial.Options{Sites: []trial.Site{{Name: "A"}}, Coordinator: []string{"--config", file}})
	r.wants(exitMissed, words("transfer notify-test"), "broken", "exit status 1", "good", "delivered")
	r.wants(exitFine, words("transfer notify-test good"), "delivered")
	r.wants(exitError, words("transfer notify-test none"), "no target")
	raw := r.wants(exitFine, words("coordinator token --name bob --role submit --life 1h"))
	token := put(t, t.TempDir(), "bob", raw)
	r.wants(exitError, words("transfer notify-test --token-file "+token), "role admin")
	bare := rooms(t, trial.Options{Sites: []trial.Site{{Name: "A"}}})
	bare.wants(exitError, words("transfer notify-test"), "its configuration file names them")
	bare.wants(exitFine, words("transfer notifications"), "no notifications")
}
