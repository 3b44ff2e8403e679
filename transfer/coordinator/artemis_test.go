package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/transfer/access"
	"weir/transfer/messages"
)

// brokerFiles is the number of files of brokerJob.
const brokerFiles = 40

// A broker of Artemis, with its default configuration or with prefixes in its acceptor, receives
// each message about the files of a job once, in the order of its file, even if no client receives
// the messages before the broker is killed and restarted.
func TestArtemis(t *testing.T) {
	tier.Full(t, "ActiveMQ Artemis")
	labtest.Need(t, "promtool")
	for name, c := range map[string]struct {
		conf    lab.ArtemisConfig
		headers string // of SUBSCRIBE
	}{
		"as installed": {lab.ArtemisConfig{}, " subscription-type:ANYCAST"},
		"prefixes":     {lab.ArtemisConfig{Prefixes: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := labtest.Start(t, c.conf)
			p := startFTS(t, "", func(conf *Config) {
				conf.Broker = brokerAt(b)
				conf.Broker.State, conf.Broker.Complete = "/queue/states", "/queue/ends"
			})
			starts := labtest.Subscribe(t, b, "/topic/transfer.fts_monitoring_start")
			first := p.brokerJob("a")
			until(t, "the broker has all messages", func() bool { return p.scrape().sum("messages_waiting") == 0 })
			for range brokerFiles {
				if m := read(t, starts.Next()); m.Job != first {
					t.Errorf("%+v", m)
				}
			}
			s := p.scrape()
			for kind, n := range map[string]float64{"state": 3 * brokerFiles, "start": brokerFiles, "complete": brokerFiles} {
				if got := s.sum("messages_sent_total", "kind", kind); got != n {
					t.Errorf("%v messages of %s, not %v", got, kind, n)
				}
			}
			b.Kill()
			require.NoError(t, b.Restart(t.Context()))
			second := p.brokerJob("b") // its messages follow the messages of the first job
			states, ends := labtest.Subscribe(t, b, "/queue/states"+c.headers), labtest.Subscribe(t, b, "/queue/ends"+c.headers)
			for _, job := range []string{first, second} {
				p.artemisMessages(job, states, ends)
			}
		})
	}
}

// brokerJob transfers files and returns the id of their job after the job has ended.
func (p *ftsPair) brokerJob(folder string) string {
	p.T.Helper()
	var files []string
	for i := range brokerFiles {
		name := fmt.Sprintf("%s/f%d", folder, i)
		p.put(p.x, name, []byte(name))
		files = append(files, p.pair(name, ""))
	}
	u := p.ftsUser("rucio", access.MaySubmit)
	id := u.submit(`{"files":[` + strings.Join(files, ",") + `]}`)
	if j := u.ended(id); j.State != "FINISHED" {
		p.T.Errorf("%+v", j)
	}
	return id
}

// artemisMessages reads all messages about a job: three states of each file in their order, and one
// end message of each file.
func (p *ftsPair) artemisMessages(job string, states, ends *labtest.Subscriber) {
	p.T.Helper()
	all := map[int64][]string{}
	for range 3 * brokerFiles {
		m := read(p.T, states.Next())
		if all[m.File] = append(all[m.File], m.State); m.Job != job {
			p.T.Fatalf("a message of another job: %+v", m)
		}
	}
	ended := map[int64]bool{}
	for range brokerFiles {
		m := read(p.T, ends.Next())
		if ended[m.File] = true; m.Job != job || m.Outcome != "Ok" {
			p.T.Fatalf("%+v", m)
		}
	}
	if len(all) != brokerFiles || len(ended) != brokerFiles {
		p.T.Errorf("states of %d files, ends of %d", len(all), len(ended))
	}
	for file, got := range all {
		if !slices.Equal(got, []string{"SUBMITTED", "ACTIVE", "FINISHED"}) {
			p.T.Errorf("file %d: %v", file, got)
		}
	}
}

// Messages that the broker refuses, because it does not create their queue or the queue is full,
// are kept until the broker accepts them.
func TestArtemisRefuses(t *testing.T) {
	tier.Full(t, "ActiveMQ Artemis")
	labtest.Need(t, "promtool")
	t.Parallel()
	b := labtest.Start(t, lab.ArtemisConfig{AddressSettings: `
		<address-setting match="/queue/closed.#">
			<auto-create-addresses>false</auto-create-addresses>
			<auto-create-queues>false</auto-create-queues>
		</address-setting>
		<address-setting match="/queue/full.#">
			<address-full-policy>FAIL</address-full-policy>
			<max-size-messages>10</max-size-messages>
		</address-setting>`})
	for to, repair := range map[string]func(t *testing.T){
		"/queue/closed.ends": func(t *testing.T) {
			require.NoError(t, b.Run(t.Context(), "queue", "create", "--silent", "--name", "/queue/closed.ends", "--address",
				"/queue/closed.ends", "--anycast", "--durable", "--auto-create-address", "--preserve-on-no-consumers"))
		},
		"/queue/full.ends": func(*testing.T) {}, // the subscription makes room
	} {
		t.Run(to, func(t *testing.T) {
			p := startFTS(t, "", func(conf *Config) {
				conf.Broker = brokerAt(b)
				conf.Broker.Start, conf.Broker.State, conf.Broker.Complete = messages.NoMessages, messages.NoMessages, to
			})
			p.refusedEnds(b, to+" subscription-type:ANYCAST", func() { repair(t) })
		})
	}
}

// refusedEnds transfers files whose end messages the broker refuses. It reads all of these messages
// from a queue after repair has removed the cause. The subscription makes room in a full queue.
func (p *ftsPair) refusedEnds(b *lab.Broker, from string, repair func()) {
	p.T.Helper()
	job := p.brokerJob("a")
	until(p.T, "the broker refuses a message", func() bool {
		s := p.scrape()
		return s.sum("trouble", "what", "broker") == 1 && s.sum("messages_waiting") > 0
	})
	repair()
	ends := labtest.Subscribe(p.T, b, from)
	ended := map[int64]bool{}
	for len(ended) < brokerFiles { // some messages perhaps twice
		m := read(p.T, ends.Next())
		if ended[m.File] = true; m.Job != job || m.Outcome != "Ok" {
			p.T.Fatalf("%+v", m)
		}
	}
	until(p.T, "the broker has all messages", func() bool {
		s := p.scrape()
		return s.sum("messages_waiting") == 0 && s.sum("trouble", "what", "broker") == 0
	})
}
