package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/tpc"
	"weir/lab"
	"weir/lab/labtest"
	"weir/transfer/access"
	"weir/transfer/fts"
	"weir/transfer/messages"
)

// brokerAt returns a broker of the lab for the configuration of a coordinator.
func brokerAt(b *lab.Broker) *messages.Broker {
	return &messages.Broker{URLs: []string{b.URL}, User: b.Settings[lab.BrokerUser], Password: b.Settings[lab.BrokerPassword], Host: "/"}
}

// An ftsMessage contains the fields of a message about a file that tests use.
type ftsMessage struct {
	File    int64  `json:"file_id"`
	Job     string `json:"job_id"`
	State   string `json:"file_state"`
	Outcome string `json:"t_final_transfer_state"`
	Source  string `json:"src_url"`
	Error   string `json:"t__error_message"`
	Meta    struct {
		Request string `json:"request_id"`
	} `json:"file_metadata"`
}

func read(t *testing.T, m labtest.Received) (got ftsMessage) {
	t.Helper()
	if err := json.Unmarshal([]byte(m.Body), &got); err != nil {
		t.Fatalf("%s: %v", m.Body, err)
	}
	return got
}

// states reads messages until each of a number of files has ended, and returns the states of each
// file in the order of the messages.
func states(t *testing.T, s *labtest.Subscriber, files int) map[int64][]string {
	t.Helper()
	all := map[int64][]string{}
	for ended := map[int64]bool{}; len(ended) < files; {
		one := s.Next()
		if queue := strings.Contains(one.Destination, "/queue/"); queue != (one.Header["destination-type"] == "ANYCAST") {
			t.Errorf("%s: %v", one.Destination, one.Header)
		}
		m := read(t, one)
		all[m.File] = append(all[m.File], m.State)
		if fts.Open(m.State) { // the message may be repeated
			delete(ended, m.File)
		} else {
			ended[m.File] = true
		}
	}
	return all
}

// The messages about the files of a job arrive at a real broker in the same way as the messages of
// FTS3: the states of each file in their order, and one end message of each file. Messages about
// other virtual organizations and about datasets are not sent.
func TestMessages(t *testing.T) {
	t.Parallel()
	labtest.Need(t, "promtool")
	b := labtest.Start(t, lab.RabbitMQConfig{})
	p := startFTS(t, "", func(c *Config) {
		c.Broker = brokerAt(b)
		c.Broker.State = "/queue/states"
		c.Broker.VOs = []string{"weir"}
	})
	of := labtest.Subscribe(t, b, "/queue/states")
	ends := labtest.Subscribe(t, b, "/topic/transfer.fts_monitoring_complete")
	starts := labtest.Subscribe(t, b, "/topic/transfer.fts_monitoring_start")
	data := []byte("content\n")
	p.put(p.x, "a/f", data)
	u := p.ftsUser("rucio", access.MaySubmit)
	more := fmt.Sprintf(`,"filesize":%d,"checksum":"ADLER32:%s","metadata":{"request_id":"r1"}`, len(data), adlerOf(data))
	id := u.submit(`{"files":[` + p.pair("a/f", more) + `,` + p.pair("a/missing", more) + `],"params":{"job_metadata":{"issuer":"rucio"}}}`)
	j := u.ended(id)
	got := states(t, of, 2)
	want := map[int64][]string{j.Files[0].ID: {"SUBMITTED", "ACTIVE", "FINISHED"}, j.Files[1].ID: {"SUBMITTED", "ACTIVE", "FAILED"}}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%v instead of %v", got, want)
	}
	for range 2 {
		m := ends.Next()
		if m.Header["destination-type"] != "" || m.Header["vo"] != "weir" ||
			m.Header["content-type"] != "application/json" || m.Header["persistent"] != "true" {
			t.Errorf("%+v", m.Header)
		}
		end := read(t, m)
		i := slices.IndexFunc(j.Files, func(f ftsFile) bool { return f.ID == end.File })
		if i < 0 || end.Job != id || end.Source != j.Files[i].Source || end.Meta.Request != "r1" ||
			end.Outcome != []string{"Ok", "Error"}[i] || end.Error != strings.ReplaceAll(j.Files[i].Reason, `"`, "") {
			t.Errorf("%+v of %+v", end, j.Files)
		}
		if begin := read(t, starts.Next()); begin.Job != id {
			t.Errorf("%+v", begin)
		}
	}
	until(t, "nothing waits", func() bool { return p.scrape().sum("messages_waiting") == 0 })
	s := p.scrape()
	for kind, n := range map[string]float64{"state": 6, "start": 2, "complete": 2} {
		if got := s.sum("messages_sent_total", "kind", kind); got != n {
			t.Errorf("%v messages of %s, not %v", got, kind, n)
		}
	}
	if s.sum("message_failures_total")+s.sum("messages_dropped_total")+s.sum("oldest_message_seconds") != 0 {
		t.Errorf("%v", s)
	}
}

// While the broker is unavailable, and while coordinators are killed, all messages are kept, on
// SQLite and on PostgreSQL. Afterwards the messages about each file arrive in their order, some
// perhaps twice.
func TestMessagesAreKept(t *testing.T) {
	t.Parallel()
	b := labtest.Start(t, lab.RabbitMQConfig{})
	either(t, func(t *testing.T, conf Config) {
		conf.State, conf.JobArea, conf.Broker = t.TempDir(), tpc.Loopback, brokerAt(b)
		toStates, toEnds := "/queue/states-"+filepath.Base(t.Name()), "/queue/ends-"+filepath.Base(t.Name())
		conf.Broker.State, conf.Broker.Start, conf.Broker.Complete = toStates, messages.NoMessages, toEnds
		b.Kill()
		h, kill := spawned(t, &conf)
		u := h.ftsUser("rucio", access.MaySubmit)
		const jobs, each = 5, 40
		var ids []string
		submit := func() {
			var files []string
			for i := range each { // each attempt fails at once: nothing listens at the address of its source
				files = append(files, fmt.Sprintf(`{"sources":["http://127.0.0.1:9/%d-%d"],"destinations":["http://127.0.0.1:9/to/%d-%d"],
					"filesize":10}`, len(ids), i, len(ids), i))
			}
			ids = append(ids, u.submit(`{"files":[`+strings.Join(files, ",")+`]}`))
		}
		for range jobs {
			submit()
			kill()
			_, kill = spawn(t, conf)
			u.http.CloseIdleConnections()
		}
		for _, id := range ids { // the files wait for endpoints that do not respond
			if status := u.ask("DELETE", "/jobs/"+id, "", nil); status != 200 {
				t.Errorf("%d", status)
			}
		}
		for _, id := range ids {
			u.ended(id)
		}
		require.NoError(t, b.Restart(context.WithoutCancel(t.Context())))
		of, ends := labtest.Subscribe(t, b, toStates), labtest.Subscribe(t, b, toEnds)
		for range 5 {
			kill()
			_, kill = spawn(t, conf)
			<-time.After(200 * time.Millisecond)
		}
		got := states(t, of, jobs*each)
		for file, all := range got {
			if all[0] != "SUBMITTED" || all[len(all)-1] != "CANCELED" {
				t.Errorf("file %d: %v", file, all)
			}
		}
		ended := map[int64]bool{}
		for len(ended) < jobs*each {
			m := read(t, ends.Next())
			if ended[m.File] = true; m.Outcome != "Abort" && m.Outcome != "Error" {
				t.Errorf("%+v", m)
			}
		}
	})
}

// Messages that the broker does not accept in time are dropped and counted. A coordinator without a
// broker keeps no messages.
func TestMessagesAreDropped(t *testing.T) {
	t.Parallel()
	labtest.Need(t, "promtool")
	h := start(t, Config{Approve: -1, JobArea: tpc.Loopback, Broker: &messages.Broker{URLs: []string{"stomp://127.0.0.1:9"}, Most: 3}})
	u := h.ftsUser("rucio", access.MaySubmit)
	var files []string
	for i := range 10 {
		files = append(files, fmt.Sprintf(`{"sources":["http://127.0.0.1:9/%d"],"destinations":["http://127.0.0.1:9/to/%d"],"filesize":10}`,
			i, i))
	}
	u.submit(`{"files":[` + strings.Join(files, ",") + `]}`)
	h.publisher.Drop(t.Context())
	s := h.scrape()
	if s.sum("messages_waiting") > 20 || s.sum("messages_dropped_total") < 7 {
		t.Errorf("%v wait, %v were dropped", s.sum("messages_waiting"), s.sum("messages_dropped_total"))
	}
	until(t, "the broker is in trouble", func() bool {
		s := h.scrape()
		return s.sum("trouble", "what", "broker") == 1 && s.sum("message_failures_total") > 0 && s.sum("oldest_message_seconds") >= 0
	})
	h.End()
	h.conf.Broker = nil
	h.Begin()
	if n, _, err := h.queue.KeptChanges(t.Context()); err != nil || n != 0 {
		t.Error(n, err)
	}
}

// A broker with an invalid configuration is refused when the coordinator starts. The error does not
// contain the password.
func TestBrokerMistakes(t *testing.T) {
	t.Parallel()
	good := messages.Broker{URLs: []string{"stomp+ssl://b.example:61612"}, User: "weir", Password: "hush"}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*messages.Broker){
		"no URL": func(b *messages.Broker) { b.URLs = nil }, "no port": func(b *messages.Broker) { b.URLs = []string{"stomp://b.example"} },
		"no scheme": func(b *messages.Broker) { b.URLs = []string{"b.example:61613"} }, "no user": func(b *messages.Broker) { b.User = "" },
		"secret": func(b *messages.Broker) { b.URLs = []string{"stomp://weir:hush@b.example:61613"} },
		"break":  func(b *messages.Broker) { b.User = "weir\nhost:/" },
		"no key": func(b *messages.Broker) { b.Cert = "x.pem" }, "time": func(b *messages.Broker) { b.Keep = -1 },
		"nothing": func(b *messages.Broker) {
			b.Start, b.Complete, b.State = messages.NoMessages, messages.NoMessages, messages.NoMessages
		},
	} {
		bad := good
		change(&bad)
		err := bad.Check()
		if err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Open(t.Context(), Config{State: t.TempDir(), Broker: &bad}); err == nil {
			t.Errorf("%s: the coordinator starts", name)
		}
	}
	missing := good
	missing.CA = t.TempDir() + "/none.pem"
	if _, err := Open(t.Context(), Config{State: t.TempDir(), Broker: &missing}); err == nil {
		t.Error("the coordinator starts without the authorities of the broker")
	}
}

// Messages for a queue of RabbitMQ that is full and rejects them are kept until the queue has room.
func TestFullQueue(t *testing.T) {
	tier.Full(t, "a full queue of RabbitMQ")
	labtest.Need(t, "promtool")
	t.Parallel()
	b := labtest.Start(t, lab.RabbitMQConfig{})
	require.NoError(t, b.Run(t.Context(), "set_policy", "full", "^ends$", `{"max-length":10,"overflow":"reject-publish"}`))
	p := startFTS(t, "", func(c *Config) {
		c.Broker = brokerAt(b)
		c.Broker.Start, c.Broker.State, c.Broker.Complete = messages.NoMessages, messages.NoMessages, "/queue/ends"
	})
	p.refusedEnds(b, "/queue/ends", func() {})
}
