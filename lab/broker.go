package lab

import (
	"context"
	"strings"
)

// The keys of Settings that log in to a Broker.
const (
	BrokerUser     = "user"
	BrokerPassword = "password"
)

// A Broker is a message broker for STOMP.
type Broker struct {
	*System
	tool, login []string // a command of the broker, before and after its arguments
}

// Address returns HOST:PORT of the broker by scheme, stomp or stomp+ssl.
func (b *Broker) Address(scheme string) string {
	_, address, _ := strings.Cut(b.URLs[scheme], "://")
	return address
}

// Run runs a command of the broker's own tool: rabbitmqctl, such as "list_queues", or artemis, such as "queue", "stat".
func (b *Broker) Run(ctx context.Context, args ...string) error {
	return b.runTool(ctx, b.user, b.env, append(append(b.tool, args...), b.login...)...)
}
