package lab

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ArtemisConfig configures an ActiveMQ Artemis; its zero value is the configuration after
// installation.
type ArtemisConfig struct {
	Config
	Prefixes        bool   // anycastPrefix=/queue/ and multicastPrefix=/topic/ in the acceptor for STOMP
	AddressSettings string // address-setting elements in addition to the installed elements
}

// Start starts ActiveMQ Artemis as a broker for STOMP: an instance of "artemis create" with a generated password in Settings. URL is that
// of the acceptor for STOMP, such as stomp://127.0.0.1:61613; URLs has it as stomp, and the acceptor for all protocols, which never has
// prefixes, as tcp. Messages that are persistent survive Kill.
func (c ArtemisConfig) Start(ctx context.Context) (*Broker, error) {
	c.Ready = cmp.Or(c.Ready, 5*time.Minute)
	s, err := c.launch(ctx, "artemis", "artemis", func(s *System, program string) { c.build(ctx, s, program) }, "tmp")
	if err != nil {
		return nil, err
	}
	return &Broker{
		System: s, tool: []string{filepath.Join(s.Dir, "instance", "bin", "artemis")},
		login: []string{"--user", s.Settings[BrokerUser], "--password", s.Settings[BrokerPassword], "--url", s.URLs["tcp"]},
	}, nil
}

// Needs returns the programs that it needs.
func (ArtemisConfig) Needs() []string { return []string{"artemis", "java"} }

func (c ArtemisConfig) build(ctx context.Context, s *System, program string) {
	all, stomp := s.newPort(false), s.newPort(false)
	s.URL = "stomp://" + stomp.Address()
	s.URLs["stomp"], s.URLs["tcp"] = s.URL, "tcp://"+all.Address()
	s.set(BrokerUser, "weir")
	s.set(BrokerPassword, rand.Text())
	s.env = append(s.env, "JDK_JAVA_OPTIONS=-XX:-UsePerfData -XX:TieredStopAtLevel=1 -Djava.io.tmpdir="+filepath.Join(s.Dir, "tmp"))
	instance := filepath.Join(s.Dir, "instance")
	s.tool(ctx, s.user, s.env, program, "create", instance, "--silent", "--require-login", "--user", s.Settings[BrokerUser],
		"--password", s.Settings[BrokerPassword], "--host", "127.0.0.1", "--default-port", all.String(), "--no-amqp-acceptor",
		"--no-mqtt-acceptor", "--no-hornetq-acceptor", "--no-web", "--no-autotune", "--nio", "--java-options", "-Xms64m -Xmx400m")
	c.acceptor(s, filepath.Join("instance", "etc", "broker.xml"), stomp.Address())
	s.part("artemis", askListener(stomp.Address()), filepath.Join(instance, "bin", "artemis"), "run")
}

// acceptor gives the acceptor for STOMP an address of its own, and the broker the settings of c.
func (c ArtemisConfig) acceptor(s *System, conf, address string) {
	if s.err != nil {
		return
	}
	const at, protocol, settings = "127.0.0.1:61613", "protocols=STOMP;", "<address-settings>"
	text, err := os.ReadFile(filepath.Join(s.Dir, conf))
	for _, part := range []string{at, protocol, settings} {
		if err == nil && strings.Count(string(text), part) != 1 {
			err = fmt.Errorf("lab: artemis: its broker.xml does not have %q once", part)
		}
	}
	s.fail(err)
	with := protocol
	if c.Prefixes {
		with += "anycastPrefix=/queue/;multicastPrefix=/topic/;"
	}
	s.file(conf, []byte(strings.NewReplacer(at, address, protocol, with, settings, settings+c.AddressSettings).Replace(string(text))))
}
