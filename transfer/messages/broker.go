// Package messages sends FTS3's messages about the files of jobs to a message broker, by STOMP.
package messages

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"weir/internal/stomp"
	"weir/internal/trust"
	"weir/transfer/fts"
)

// A Broker is a message broker that receives FTS3's messages about the files of jobs, by STOMP.
type Broker struct {
	URLs     []string // stomp://HOST:PORT or, with TLS, stomp+ssl://HOST:PORT; the first that responds is used
	User     string   // "": no login
	Password string
	Host     string   // virtual host; "": the host of the URL
	CA       string   // file with authorities of the broker's certificate, besides the authorities of the system
	Cert     string   // file with a client certificate; "": no certificate
	Key      string   // file with its key
	VOs      []string // only messages of these virtual organizations are sent; empty: of all
	Users    bool     // messages name users

	Start    string // destinations in the broker's notation; "": the destinations of FTS3, NoMessages: no messages
	Complete string
	State    string

	Life time.Duration // of messages at the broker; 0 is a day
	Keep time.Duration // how long messages wait for the broker before they are dropped; 0 is three days
	Most int64         // approximate maximum number of changes of files that wait for it; 0 is a million
}

// NoMessages is the destination of messages that are not sent.
const NoMessages = "none"

// ftsTopic begins the destinations of FTS3.
const ftsTopic = "/topic/transfer.fts_monitoring_"

// Check returns an error if the broker cannot be used.
func (b *Broker) Check() error {
	if len(b.URLs) == 0 {
		return errors.New("urls: name the broker, as in stomp+ssl://broker.example.org:61612")
	}
	for _, text := range b.URLs {
		if _, _, err := brokerAddress(text); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"user": b.User, "password": b.Password, "virtual_host": b.Host, "start": b.Start,
		"complete": b.Complete, "state": b.State} {
		if strings.ContainsAny(text, "\r\n\x00") {
			return fmt.Errorf("%s: write it without line breaks", name)
		}
	}
	switch {
	case (b.User == "") != (b.Password == ""):
		return errors.New("user and password must be given together")
	case (b.Cert == "") != (b.Key == ""):
		return errors.New("cert and key must be given together")
	case b.Life < 0 || b.Keep < 0 || b.Most < 0:
		return errors.New("life, keep and most: use more than 0")
	case b.destination(fts.StartMessage) == "" && b.destination(fts.CompleteMessage) == "" && b.destination(fts.StateMessage) == "":
		return errors.New("start, complete and state are all none: no message would be sent")
	}
	return nil
}

// brokerAddress reads the URL of a broker.
func brokerAddress(text string) (address string, secure bool, err error) {
	u, err := url.Parse(text)
	if err == nil && u.User != nil {
		return "", false, errors.New("broker: leave user and password out of the URL; name a file with password_file")
	}
	if err != nil || u.Scheme != "stomp" && u.Scheme != "stomp+ssl" || u.Hostname() == "" || u.Port() == "" ||
		strings.Trim(u.Path, "/") != "" {
		return "", false, fmt.Errorf("broker %.100q: write it as stomp://HOST:PORT or stomp+ssl://HOST:PORT", text)
	}
	return net.JoinHostPort(u.Hostname(), u.Port()), u.Scheme == "stomp+ssl", nil
}

// destination returns the destination of messages of a kind, or "" if they are not sent.
func (b *Broker) destination(k fts.Kind) string {
	to := map[fts.Kind]string{fts.StartMessage: b.Start, fts.CompleteMessage: b.Complete, fts.StateMessage: b.State}[k]
	if to == NoMessages {
		return ""
	}
	return cmp.Or(to, ftsTopic+string(k))
}

// CheckFiles returns an error if a file that the configuration names cannot be read.
func (b *Broker) CheckFiles() error {
	_, err := b.brokers()
	return err
}

// brokers returns the addresses of the broker, each with its login.
func (b *Broker) brokers() (all []stomp.Broker, err error) {
	pool, err := trust.WithSystem(b.CA)
	if err != nil {
		return nil, err
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	if b.Cert != "" {
		pair, err := tls.LoadX509KeyPair(b.Cert, b.Key)
		if err != nil {
			return nil, err
		}
		secure.Certificates = []tls.Certificate{pair}
	}
	for _, text := range b.URLs {
		address, isSecure, err := brokerAddress(text)
		if err != nil {
			return nil, err
		}
		one := stomp.Broker{Address: address, Host: b.Host, User: b.User, Password: b.Password}
		if isSecure {
			one.TLS = secure
		}
		all = append(all, one)
	}
	return all, nil
}
