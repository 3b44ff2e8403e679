package coordinator

import (
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/dbtest"
	"weir/lab/labtest"
)

// An unmodified Rucio receives the outcomes of its files in weir's messages:
// rucio-conveyor-receiver and finisher make a rule OK without a poller. Requests for a lost and a
// corrupt source fail with weir's reasons, in the same way as polled requests. weir uses PostgreSQL
// here.
func TestRucioReceiver(t *testing.T) {
	tier.Full(t, "Rucio")
	t.Parallel()
	labtest.FTS(t)
	labtest.Need(t, "promtool")
	for name, broker := range map[string]func(*testing.T) *lab.Broker{
		"RabbitMQ": func(t *testing.T) *lab.Broker { return labtest.Start(t, lab.RabbitMQConfig{}) },
		"Artemis":  func(t *testing.T) *lab.Broker { return labtest.Start(t, lab.ArtemisConfig{Prefixes: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			b := broker(t)
			r := startRucio(t, false, func(c *Config, of *lab.RucioConfig) {
				c.DB, c.VO, c.Broker = dbtest.Server(t), "atlas", brokerAt(b)
				c.Broker.Complete = "/queue/transfer.fts_monitoring_complete"
				of.Broker, of.VO = b, "atlas"
			})
			r.setup()
			two := r.twoRules()
			var out struct{ Wall float64 }
			_, wait := r.running("daemons", map[string]any{"fts": r.fts, "bulk": 1, "ended": len(two.files), "receiver": true}, &out)
			require.NoError(t, wait())
			two.check(two.state())
			until(t, "the broker has all messages", func() bool { return r.scrape().sum("messages_waiting") == 0 })
			t.Logf("the daemons took %.1f s", out.Wall)
		})
	}
}
