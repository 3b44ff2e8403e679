package messages

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/pause"
	"weir/internal/stomp"
	"weir/transfer/fts"
	"weir/transfer/health"
	"weir/transfer/metrics"
	"weir/transfer/queue"
)

const (
	messageBatch   = 200                    // changes of files that are sent at once
	messageCollect = 100 * time.Millisecond // in which changes are collected
	messageDial    = 10 * time.Second       // for a connection to the broker
	messageSend    = 30 * time.Second       // for a batch to be confirmed
	messageIdle    = time.Minute            // after which a connection is closed
	messageFirst   = time.Second            // pause after a failed attempt, which doubles up to
	messageLongest = time.Minute            // this pause
	messageLife    = 24 * time.Hour         // of messages at the broker, as FTS3's
	messageKeep    = 3 * 24 * time.Hour     // for which changes wait for the broker
	messageMost    = 1_000_000              // changes that wait for it
)

// A Config configures a Publisher.
type Config struct {
	Broker   *Broker
	Queue    *queue.Queue
	Health   *health.Health
	Log      *slog.Logger
	Now      func() time.Time
	Counters *metrics.Counters
	Changed  *pause.Signal // files of jobs have changed
}

// A Publisher sends messages about changes of files to the broker.
type Publisher struct {
	broker   *Broker
	queue    *queue.Queue
	health   *health.Health
	log      *slog.Logger
	now      func() time.Time
	counters *metrics.Counters
	changed  *pause.Signal

	brokers []stomp.Broker
	conn    *stomp.Conn // nil: not connected
	used    time.Time
	options fts.MessageOptions
}

// New returns a Publisher, if the broker's configuration and certificates are valid.
func New(c Config) (*Publisher, error) {
	if err := c.Broker.Check(); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	if _, err := c.Broker.brokers(); err != nil {
		return nil, err
	}
	return &Publisher{broker: c.Broker, queue: c.Queue, health: c.Health, log: c.Log, now: c.Now, counters: c.Counters, changed: c.Changed,
		options: fts.MessageOptions{Users: c.Broker.Users}}, nil
}

// Run sends messages about the changes of files until ctx ends. service is the URL of the
// coordinator. A change is removed from the database when the broker has confirmed its messages. If
// a message is not confirmed, the messages after it are sent again as well, so that the messages
// about a file arrive in order.
func (p *Publisher) Run(ctx context.Context, service string) {
	if u, err := url.Parse(service); err == nil {
		p.options.Endpoint = u.Hostname()
	}
	defer p.disconnect()
	var dropped time.Time
	for wait := messageFirst; ctx.Err() == nil; {
		if now := p.now(); now.Sub(dropped).Abs() > time.Minute {
			dropped = now
			p.Drop(ctx)
		}
		next := p.changed.Next()
		n, err := p.publish(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			pause.For(ctx, wait/2+rand.N(wait/2))
			wait = min(2*wait, messageLongest)
			continue
		case n < messageBatch:
			p.disconnectIdle()
			pause.Await(ctx, next)
			pause.For(ctx, messageCollect)
		}
		wait = messageFirst
	}
}

// Drop drops changes that have waited for too long, or are too many.
func (p *Publisher) Drop(ctx context.Context) {
	for more := true; more && ctx.Err() == nil; {
		var n int64
		var err error
		n, more, err = p.queue.DropChanges(ctx, p.now().Add(-cmp.Or(p.broker.Keep, messageKeep)), cmp.Or(p.broker.Most, messageMost))
		p.health.Database(err)
		if n > 0 {
			p.log.Warn("changes of files were dropped: the broker did not take them in time", "changes", n)
			p.counters.Messages(metrics.MessagesDropped, "", n)
		}
	}
}

// publish sends the messages of the next changes, and returns how many changes there were.
func (p *Publisher) publish(ctx context.Context) (n int, err error) {
	changes, err := p.queue.Changes(ctx, messageBatch)
	if p.health.Database(err); err != nil || len(changes) == 0 {
		return 0, err
	}
	var all []stomp.Message
	var kinds []fts.Kind
	until := make([]int, len(changes)) // the number of messages up to each change
	for i, one := range changes {
		messages, err := fts.Messages(one, p.options)
		if err != nil {
			p.log.Warn("a change of a file cannot be written as a message", "item", one.File.ID, "error", err)
		}
		for _, m := range messages {
			if to := p.broker.destination(m.Kind); to != "" && (len(p.broker.VOs) == 0 || slices.Contains(p.broker.VOs, m.VO)) {
				all, kinds = append(all, p.message(to, one, m)), append(kinds, m.Kind)
			}
		}
		until[i] = len(all)
	}
	sent, err := p.send(ctx, all)
	if ctx.Err() != nil {
		err = nil // the coordinator stops
	}
	p.health.Set("broker", err)
	var done []int64
	for i, one := range changes {
		if until[i] <= sent {
			done = append(done, one.ID)
		}
	}
	if dbErr := p.removeChanges(ctx, done); dbErr != nil {
		return len(changes), dbErr
	}
	for _, k := range kinds[:sent] {
		p.counters.Messages(metrics.MessagesSent, string(k), 1)
	}
	if err != nil {
		p.counters.Messages(metrics.MessagesFailed, "", 1)
	}
	return len(changes), err
}

// removeChanges removes changes that are done, even while the coordinator stops: otherwise their
// messages would be sent again.
func (p *Publisher) removeChanges(ctx context.Context, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := p.queue.RemoveChanges(ctx, ids)
	p.health.Database(err)
	return err
}

// message returns a message in the form that the broker receives. Without amq-msg-type, ActiveMQ
// would treat it as bytes.
func (p *Publisher) message(to string, c *queue.FileChange, m fts.Message) stomp.Message {
	expires := c.At.Add(cmp.Or(p.broker.Life, messageLife)).UnixMilli()
	if now := p.now().Add(time.Minute).UnixMilli(); expires < now { // it has waited here
		expires = now
	}
	header := map[string]string{"persistent": "true", "amq-msg-type": "text", "content-type": "application/json", "vo": m.VO,
		"expires": strconv.FormatInt(expires, 10)}
	if strings.HasPrefix(to, "/queue/") { // without prefixes, Artemis drops and confirms messages that no queue receives
		header["destination-type"] = "ANYCAST"
	}
	return stomp.Message{Destination: to, Body: m.Body, Header: header}
}

// send sends messages, and returns the number of messages, counted from the first, that the broker
// has confirmed.
func (p *Publisher) send(ctx context.Context, all []stomp.Message) (int, error) {
	if len(all) == 0 {
		return 0, nil
	}
	if p.conn == nil {
		if err := p.connect(ctx); err != nil {
			return 0, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, messageSend)
	defer cancel()
	n, err := p.conn.Send(ctx, all)
	if p.used = time.Now(); err != nil {
		p.disconnect()
		return n, fmt.Errorf("broker %s: %w", p.brokers[0].Address, err)
	}
	return n, nil
}

// connect connects to the first broker that responds. The next time it tries the other brokers
// first.
func (p *Publisher) connect(ctx context.Context) (err error) {
	if p.brokers == nil {
		if p.brokers, err = p.broker.brokers(); err != nil {
			return err
		}
	}
	for range p.brokers {
		dial, cancel := context.WithTimeout(ctx, messageDial)
		p.conn, err = stomp.Dial(dial, p.brokers[0])
		cancel()
		if err == nil {
			return nil
		}
		p.conn = nil
		p.brokers = append(p.brokers[1:], p.brokers[0])
	}
	return err
}

func (p *Publisher) disconnect() {
	if p.conn != nil {
		_ = p.conn.Close() // all confirmed messages are at the broker
		p.conn = nil
	}
}

// disconnectIdle closes a connection that was not used for a while: firewalls drop its state, and
// brokers close it.
func (p *Publisher) disconnectIdle() {
	if time.Since(p.used) > messageIdle {
		p.disconnect()
	}
}
