package coordinator

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/db/dbtest"
	"weir/lab"
)

// An unmodified Rucio learns from weir's messages how its files ended: rucio-conveyor-receiver and finisher make a rule OK, without a
// poller. Requests for a lost and a corrupt source fail with weir's reasons, as those that are polled do. weir has PostgreSQL here.
func TestRucioReceiver(t *testing.T) {
	t.Parallel()
	lab.FTS(t)
	lab.Need(t, "promtool")
	b := lab.StartRabbitMQ(t, lab.RabbitMQConfig{})
	r := startRucio(t, false, func(c *Config, of *lab.RucioConfig) {
		c.DB, c.VO, c.Broker = dbtest.Server(t), "atlas", brokerAt(b)
		c.Broker.Complete = "/queue/transfer.fts_monitoring_complete"
		of.Broker, of.VO = b, "atlas"
	})
	r.setup()
	var files []rucioFile
	data := map[string][]byte{}
	for i := range 5 {
		name := fmt.Sprintf("f%d", i)
		data[name] = bytes.Repeat([]byte(name+"\n"), 5000*(i+1))
		files = append(files, rucioFile{name, len(data[name]), adlerOf(data[name])})
	}
	good, bad := r.rule("good", files[:3], "Y", "X"), r.rule("bad", files[3:], "Y", "X")
	maps.Copy(good.Paths, bad.Paths)
	for _, name := range []string{"f0", "f1", "f2", "f4"} { // f3 is lost
		content := data[name]
		if name == "f4" {
			content = make([]byte, len(content))
		}
		r.put(r.x, filepath.Join("store", good.Paths[name]), content)
	}
	var out struct{ Wall float64 }
	_, wait := r.running("daemons", map[string]any{"fts": r.fts, "bulk": 1, "ended": len(files), "receiver": true}, &out)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	state := r.state(map[string]string{"good": good.Rule, "bad": bad.Rule})
	if state.Rules["good"] != "OK" || state.Rules["bad"] == "OK" || !slices.Equal(state.Suspicious, []string{"f3", "f4"}) {
		t.Errorf("%+v", state)
	}
	reasons := map[string]string{"f3": "SOURCE [2] No such file", "f4": "SOURCE CHECKSUM MISMATCH"}
	for _, q := range state.Ended {
		if reason := reasons[q.Name]; (q.State == "FAILED") != (reason != "") || !strings.Contains(q.Error, reason) {
			t.Errorf("%+v", q)
		}
	}
	for _, f := range files[:3] {
		got, err := os.ReadFile(filepath.Join(r.y.Data, "store", good.Paths[f.Name]))
		if err != nil || !bytes.Equal(got, data[f.Name]) {
			t.Errorf("%s: %d bytes, %v", f.Name, len(got), err)
		}
	}
	until(t, "the broker has all messages", func() bool { return r.scrape().sum("messages_waiting") == 0 })
	t.Logf("the daemons took %.1f s", out.Wall)
}
