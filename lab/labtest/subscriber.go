package labtest

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"net/url"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"weir/lab"
)

//go:embed subscribe.py
var subscribePython string

// A Received is a message that a broker has sent.
type Received struct {
	Destination string            `json:"destination"`
	Header      map[string]string `json:"header"`
	Body        string            `json:"body"`
	Subscribed  string            `json:"subscribed"` // not a message: a subscription is active
}

// A Subscriber receives messages of a broker with stomp.py, the client that Rucio uses. It is for one goroutine.
type Subscriber struct {
	t     testing.TB
	all   chan Received
	early []Received // that came before the last subscription was active
}

// Subscribe receives the messages of destinations of a broker until the test ends or the broker does. A destination may
// be followed by headers of SUBSCRIBE, as in "/queue/a subscription-type:ANYCAST". It returns when the subscriptions are
// active.
func Subscribe(t testing.TB, broker *lab.Broker, destinations ...string) *Subscriber {
	t.Helper()
	python := filepath.Join(FTS(t), "python3")
	at, err := url.Parse(broker.URL)
	if err != nil {
		t.Fatal(err)
	}
	login := []string{broker.Settings[lab.BrokerUser], broker.Settings[lab.BrokerPassword]}
	args := append([]string{"-c", subscribePython, at.Hostname(), at.Port()}, append(login, "/")...)
	cmd := exec.CommandContext(t.Context(), python, append(args, destinations...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &Subscriber{t: t, all: make(chan Received, 100_000)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(s.all)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var m Received
			if json.Unmarshal(lines.Bytes(), &m) == nil {
				s.all <- m
			}
		}
	}()
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		<-done
		_ = cmd.Wait() // it was killed
	})
	for active := 0; active < len(destinations); {
		if m := s.receive(); m.Subscribed != "" {
			active++
		} else {
			s.early = append(s.early, m)
		}
	}
	return s
}

// Next returns the next message. It fails the test if no message arrives within two minutes.
func (s *Subscriber) Next() Received {
	s.t.Helper()
	if len(s.early) > 0 {
		m := s.early[0]
		s.early = s.early[1:]
		return m
	}
	return s.receive()
}

func (s *Subscriber) receive() Received {
	s.t.Helper()
	select {
	case m, open := <-s.all:
		if !open {
			s.t.Fatal("the subscription has ended")
		}
		return m
	case <-time.After(2 * time.Minute):
		s.t.Fatal("no message comes")
	}
	return Received{}
}
