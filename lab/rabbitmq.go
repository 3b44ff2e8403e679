package lab

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"path/filepath"
	"time"
)

//go:embed rabbitmq.conf
var rabbitConf string

// RabbitMQConfig configures a RabbitMQ; its zero value is a valid configuration.
type RabbitMQConfig struct {
	Config
}

type rabbitValues struct {
	AMQP, STOMP, Secure, CA, Cert, Key, User, Password string
}

// rabbitScript is RabbitMQ's own script: the script in PATH runs only as root or rabbitmq.
const rabbitScript = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// Start starts RabbitMQ as a broker for STOMP, with a generated password in Settings. URL is that of STOMP, such as
// stomp://127.0.0.1:61613; URLs has it as stomp, AMQP as amqp, and with TLS stomp+ssl. Messages that are persistent survive Kill.
func (c RabbitMQConfig) Start(ctx context.Context) (*Broker, error) {
	c.Ready = cmp.Or(c.Ready, 5*time.Minute)
	s, err := c.launch(ctx, "rabbitmq", "rabbitmq-server", func(s *System, _ string) { c.build(s) }, "mnesia", "home")
	if err != nil {
		return nil, err
	}
	return &Broker{System: s, tool: []string{filepath.Join(filepath.Dir(rabbitScript), "rabbitmqctl")}}, nil
}

// Needs returns the programs that it needs.
func (RabbitMQConfig) Needs() []string { return []string{"rabbitmq-server", "epmd"} }

func (c RabbitMQConfig) build(s *System) {
	epmd := s.program(c.Config, "epmd")
	// RabbitMQ ends at once if it cannot listen on its node's port on all addresses, and epmd, which listens on all of loopback, says
	// nothing and exits with 0.
	names, node, amqp, stomp := s.newPort(true), s.newPort(true), s.newPort(false), s.newPort(false)
	v := rabbitValues{AMQP: amqp.Address(), STOMP: stomp.Address(), User: "weir", Password: rand.Text()}
	s.URL = "stomp://" + stomp.Address()
	s.URLs["stomp"], s.URLs["amqp"] = s.URL, "amqp://"+amqp.Address()
	if c.TLS {
		v.Cert, v.Key = s.certificate(false, nil)
		v.CA = s.CAFile
		secure := s.newPort(false)
		v.Secure = secure.Address()
		s.URLs["stomp+ssl"] = "stomp+ssl://" + secure.local()
	}
	s.set(BrokerUser, v.User)
	s.set(BrokerPassword, v.Password)
	home := filepath.Join(s.Dir, "home")
	s.env = append(s.env, "HOME="+home, "ERL_EPMD_PORT="+names.String(), "ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_NODENAME=weir-lab@localhost", "RABBITMQ_DIST_PORT="+node.String(), "RABBITMQ_NODE_PORT="+amqp.String(),
		"RABBITMQ_CONF_ENV_FILE="+s.file("env.conf", nil), "RABBITMQ_CONFIG_FILE="+s.config("rabbitmq.conf", rabbitConf, v),
		"RABBITMQ_ADVANCED_CONFIG_FILE="+filepath.Join(s.Dir, "advanced.config"),
		"RABBITMQ_ENABLED_PLUGINS_FILE="+s.file("enabled_plugins", []byte("[rabbitmq_stomp].\n")),
		"RABBITMQ_MNESIA_BASE="+filepath.Join(s.Dir, "mnesia"), "RABBITMQ_LOG_BASE="+home, "RABBITMQ_LOGS=-",
		"RABBITMQ_PID_FILE="+filepath.Join(home, "pid"), "RABBITMQ_GENERATED_CONFIG_DIR="+home, "RABBITMQ_SCHEMA_DIR="+home,
		// One scheduler that does not spin: a broker of tests has little to do.
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 1:1 +sbwt none -kernel inet_dist_use_interface {127,0,0,1}")
	s.part("epmd", askListener(names.Address()), epmd, "-port", names.String(), "-address", "127.0.0.1")
	s.part("rabbitmq", askListener(stomp.Address()), rabbitScript)
}
