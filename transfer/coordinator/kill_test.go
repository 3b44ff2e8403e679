package coordinator

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/tpc"
	"weir/internal/wire"
	"weir/lab"
	"weir/lab/labtest"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/client"
	"weir/transfer/messages"
	"weir/transfer/transfertest"
)

const childKey = "WEIR_TEST_COORDINATOR"

// TestMain runs a coordinator that can be killed if the process was started for that, and the tests
// otherwise.
func TestMain(m *testing.M) {
	if text := os.Getenv(childKey); text != "" {
		if err := child(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(tier.Main(m))
}

// childConfig contains the fields of Config that the process receives.
type childConfig struct {
	State, DB, Listen string
	Lease             time.Duration
	Standby           bool
	SiteCA, CA        string
	JobArea           tpc.Area
	Names             map[string][]string
	Broker            *messages.Broker
}

func child(text string) error {
	var o childConfig
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	conf := Config{State: o.State, DB: o.DB, Listen: o.Listen, Approve: -1, Lease: o.Lease, Standby: o.Standby,
		SiteCA: o.SiteCA, CA: o.CA, JobArea: o.JobArea, Names: o.Names, Broker: o.Broker}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c, err := Open(ctx, conf)
	if err != nil {
		return err
	}
	fmt.Println(c.URL())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return c.Run(ctx)
}

// spawn starts a coordinator in a separate process, and waits until it serves requests.
func spawn(t *testing.T, conf Config) (url string, kill func()) {
	t.Helper()
	for try := range 20 {
		first, kill := startChild(t, conf)
		if url := <-first; url != "" {
			return url, kill
		}
		kill() // another process may use its port for a moment
		<-time.After(time.Duration(try) * 100 * time.Millisecond)
	}
	t.Fatal("it does not start")
	return "", nil
}

// startChild starts a coordinator in a separate process. first receives its URL when it serves
// requests, or "" when it has ended.
func startChild(t *testing.T, conf Config) (first <-chan string, kill func()) {
	t.Helper()
	first, _, kill = startProcess(t, conf)
	return first, kill
}

// startProcess does the same as startChild, and also returns the process.
func startProcess(t *testing.T, conf Config) (first <-chan string, cmd *exec.Cmd, kill func()) {
	t.Helper()
	text, err := json.Marshal(childConfig{conf.State, conf.DB, conf.Listen, conf.Lease, conf.Standby, conf.SiteCA, conf.CA, conf.JobArea,
		conf.Names, conf.Broker})
	require.NoError(t, err)
	cmd = exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childKey+"="+string(text))
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		lines.Scan()
		said <- lines.Text()
	}()
	var once sync.Once
	kill = func() {
		once.Do(func() {
			_ = cmd.Process.Kill()
			_ = in.Close()
			_ = cmd.Wait() // the process was killed
		})
	}
	t.Cleanup(kill)
	return said, cmd, kill
}

// spawned starts a coordinator in a separate process. Further processes with conf listen at the
// same address.
func spawned(t *testing.T, conf *Config) (h *service, kill func()) {
	t.Helper()
	conf.Listen = labtest.Address(t)
	url, kill := spawn(t, *conf)
	id, err := wire.Keep(conf.State)
	require.NoError(t, err)
	raw, err := os.ReadFile(conf.State + "/" + access.AdminFile)
	require.NoError(t, err)
	return &service{Coordinator: &Coordinator{url: url, pin: id.Pin}, Service: transfertest.Attach(t, client.Config{URLs: []string{url},
		Pin: id.Pin, Token: strings.TrimSpace(string(raw)), Wait: 10 * time.Second})}, kill
}

// insist repeats a request until it succeeds. Only status 503 and failed connections are repeated.
func insist[T any](t *testing.T, ask func() (T, error)) (v T) {
	t.Helper()
	until(t, "there is an answer", func() bool {
		var err error
		v, err = ask()
		if s := wire.Status(err); err != nil && s != 0 && s != 503 {
			t.Fatal(err)
		}
		return err == nil
	})
	return v
}

// A coordinator that is killed repeatedly, at any moment, loses no outcome and applies no outcome
// twice.
func TestKilledCoordinators(t *testing.T) {
	tier.Slow(t, "kills coordinators")
	t.Parallel()
	each(t, func(t *testing.T, conf Config) {
		conf.State = t.TempDir()
		h, kill := spawned(t, &conf)
		admin := h.Client
		a, b := h.Agent("A", transfertest.Endpoint()), h.Agent("B", transfertest.Endpoint())
		const files = 400
		a.Write("/store/run1", files, 20_000)
		h.Scan("/store/run1", "A", "/store/run1")
		q, err := admin.Submit(t.Context(), transfer.Submission{Dataset: "/store/run1", To: "B", Tries: 20})
		require.NoError(t, err)
		kills := 0
		for !q.Status.Ended() {
			if kills < 5 && q.Count.Done < files {
				<-time.After(time.Duration(50+rand.IntN(200)) * time.Millisecond)
				kill()
				kills++
				_, kill = spawn(t, conf)
			}
			<-time.After(20 * time.Millisecond)
			q = insist(t, func() (transfer.Request, error) { return admin.Request(t.Context(), q.ID) })
		}
		if q.Status != transfer.Completed || q.Count.Done+q.Count.Skipped != files {
			t.Errorf("after %d kills: %+v", kills, q)
			h.Log(q.ID)
		}
		h.once(q.ID)
		for i := range files {
			same(t, fmt.Sprintf("/store/run1/f%d", i), a, b)
		}
		t.Logf("%d kills, %d attempts at %d files", kills, q.Count.Attempts, files)
	})
}

// once checks that no file of a request was moved twice.
func (h *service) once(request int64) {
	h.T.Helper()
	good := map[int64]int{}
	for _, at := range insist(h.T, func() ([]transfer.Attempt, error) { return h.Client.Attempts(h.T.Context(), request, 0, 10000) }) {
		if at.Fault == "" && !at.Late {
			good[at.Item]++
		}
	}
	for item, n := range good {
		if n != 1 {
			h.T.Errorf("file %d arrived %d times", item, n)
		}
	}
}

// While the database is unavailable, requests fail with status 503. All work continues when the
// database is back.
func TestTheDatabaseGoesAndComesBack(t *testing.T) {
	t.Parallel()
	labtest.Need(t, "postgres", "initdb", "pg_isready")
	pg, err := lab.PostgreSQLConfig{}.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = pg.Stop() })
	h := start(t, Config{DB: pg.URL, Approve: -1})
	a, b := h.Agent("A", transfertest.Endpoint()), h.Agent("B", nil)
	a.Write("/store/run1", 300, 20_000)
	h.Scan("/store/run1", "A", "/store/run1")
	until(t, "both sites are there", func() bool {
		sites, err := h.Client.Sites(t.Context())
		return err == nil && len(sites) == 2
	})
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/run1", To: "B"})
	require.NoError(t, err)
	until(t, "it has begun", func() bool {
		q, err = h.Client.Request(t.Context(), q.ID)
		return err == nil && q.Count.Done > 0
	})
	pg.Kill()
	until(t, "it is said", func() bool {
		_, err := h.Client.Request(t.Context(), q.ID)
		return wire.Status(err) == 503
	})
	require.NoError(t, pg.Restart(t.Context()))
	defer func() {
		if !q.Status.Ended() {
			t.Logf("%+v", q)
			h.Log(q.ID)
		}
	}()
	until(t, "all is there", func() bool {
		q, err = h.Client.Request(t.Context(), q.ID)
		return err == nil && q.Status.Ended()
	})
	if q.Status != transfer.Completed || q.Count.Done+q.Count.Skipped != 300 {
		t.Errorf("%+v", q)
	}
	for i := range 300 {
		same(t, fmt.Sprintf("/store/run1/f%d", i), a, b)
	}
}
