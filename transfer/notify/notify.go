// Package notify notifies webhooks, commands and mail recipients of requests that have ended.
//
// It delivers one message to one target. The coordinator stores undelivered messages in its
// database and repeats them until they are delivered, so that a target may receive a message more
// than once: the message's ID is the same each time.
package notify

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"time"

	"weir/internal/tpc"
	"weir/internal/trust"
	"weir/internal/unit"
	"weir/transfer"
)

// Bounds of one attempt.
const (
	usualTimeout   = 30 * time.Second
	longestTimeout = 10 * time.Minute
	keptOutput     = 2048 // bytes of a response, or of a program's output, that an error repeats
)

// A Target is a recipient of notifications, with one of Webhook, Command and Mail.
type Target struct {
	Name     string
	On       []transfer.Status // ends that cause notifications; nil: all of Ends except completed
	Webhook  string            // URL that gets a POST; https, unless Private
	Secret   string            // signs webhooks; "": they are not signed
	CAFile   string            // PEM file of authorities of the webhook's certificate, besides the system's
	Private  bool              // the webhook may be at an address of a private network or of this machine
	Command  []string          // program and arguments
	Mail     []string          // addresses
	From     string            // sender of the mail; "": sendmail decides
	Sendmail []string          // program and arguments; nil: /usr/sbin/sendmail -t -i
	Timeout  time.Duration     // of one attempt; 0: 30 s
}

// Ends returns the ways in which requests end.
func Ends() []transfer.Status {
	return []transfer.Status{transfer.Completed, transfer.Partial, transfer.Failed, transfer.Cancelled, transfer.Rejected, transfer.Expired}
}

// Wants reports whether the target receives notifications of requests that end with a status.
func (t *Target) Wants(s transfer.Status) bool {
	if len(t.On) == 0 {
		return s != transfer.Completed && slices.Contains(Ends(), s)
	}
	return slices.Contains(t.On, s)
}

// Kind returns webhook, command or mail.
func (t *Target) Kind() string {
	switch {
	case t.Webhook != "":
		return "webhook"
	case len(t.Command) > 0:
		return "command"
	}
	return "mail"
}

// A Mistake is a wrong value of keys of a target.
type Mistake struct {
	Keys []string // as in a configuration file
	Err  error
}

// Check returns an error if the target is not valid.
func (t *Target) Check() error {
	for _, m := range t.Mistakes() {
		return m.Err
	}
	return nil
}

// Mistakes returns the reasons why the target is not valid.
func (t *Target) Mistakes() (all []Mistake) {
	add := func(wrong bool, keys, format string, args ...any) {
		if wrong {
			all = append(all, Mistake{strings.Fields(keys), fmt.Errorf(format, args...)})
		}
	}
	kinds := 0
	for _, given := range []bool{t.Webhook != "", len(t.Command) > 0, len(t.Mail) > 0} {
		if given {
			kinds++
		}
	}
	add(t.Name == "" || len(t.Name) > 100, "name", "give the target a name of at most 100 bytes")
	add(kinds != 1, "webhook command mail", "give exactly one of webhook, command and mail")
	add(t.Timeout < 0 || t.Timeout > longestTimeout, "timeout", "timeout: use at most %v", unit.Duration(longestTimeout))
	add(t.Webhook == "" && (t.Secret != "" || t.CAFile != "" || t.Private), "webhook", "secret, ca_file and private are for a webhook")
	add(len(t.Mail) == 0 && (t.From != "" || len(t.Sendmail) > 0), "mail", "from and sendmail are for mail")
	for _, s := range t.On {
		add(!slices.Contains(Ends(), s), "on", "on: %q is no end of a request", string(s))
	}
	for _, address := range t.Mail {
		add(!isMail(address), "mail", "mail: %q is not a mail address, as in ops@example.org", address)
	}
	add(t.From != "" && !isMail(t.From), "from", "from: %q is not a mail address, as in ops@example.org", t.From)
	if len(t.Command) > 0 {
		err := checkCommand(t.Command)
		add(err != nil, "command", "command: %w", err)
	}
	if t.Webhook != "" {
		err := t.checkWebhook()
		add(err != nil, "webhook secret_file private", "%w", err)
	}
	return all
}

func isMail(address string) bool {
	_, err := mail.ParseAddress(address)
	return err == nil
}

func (t *Target) checkWebhook() error {
	if _, err := t.secret(); err != nil {
		return err
	}
	u, err := url.Parse(t.Webhook)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("webhook: write it as https://HOST/PATH") // it may contain a secret: it is not repeated
	}
	if err := t.guard().Check(u); err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	return nil
}

// guard returns the guard of the addresses of a webhook, which never allows link-local and other
// special addresses.
func (t *Target) guard() *tpc.Guard {
	g := &tpc.Guard{Hosts: []string{"*"}, Encrypted: !t.Private}
	if t.Private {
		g.Upto = tpc.Loopback
	}
	return g
}

// A Message is a message to targets.
type Message struct {
	ID          string            `json:"id"`   // the same for each attempt
	Type        string            `json:"type"` // request.partial and so on, or test
	Time        time.Time         `json:"time"` // when the request ended
	Coordinator string            `json:"coordinator"`
	Text        string            `json:"text"` // a sentence
	Request     *transfer.Request `json:"request,omitempty"`
	Files       []File            `json:"files,omitempty"`         // the first files that are not at the destination
	MoreFiles   int64             `json:"files_omitted,omitempty"` // the number of other files that are not there
}

// A File is a file that is not at the destination.
type File struct {
	Name   string         `json:"name"`
	State  transfer.State `json:"state"`
	Reason string         `json:"reason"`
	Source string         `json:"source,omitempty"` // of the last attempt
}

// A Sender delivers messages to one target. It is safe for concurrent use.
type Sender struct {
	Target
	http *http.Client
}

// New returns a sender for a target that Check accepts.
func New(t Target) (*Sender, error) {
	if err := t.Check(); err != nil {
		return nil, fmt.Errorf("target %q of notifications: %w", t.Name, err)
	}
	t.Timeout = cmp.Or(t.Timeout, usualTimeout)
	if len(t.Mail) > 0 && len(t.Sendmail) == 0 {
		t.Sendmail = []string{"/usr/sbin/sendmail", "-t", "-i"}
	}
	s := &Sender{Target: t}
	if t.Webhook == "" {
		return s, nil
	}
	pool, err := trust.WithSystem(t.CAFile)
	if err != nil {
		return nil, fmt.Errorf("target %q of notifications: %w", t.Name, err)
	}
	dialer := tpc.Dialer(t.Timeout, t.guard())
	s.http = &http.Client{
		Transport: &http.Transport{ // no proxy: the guard could not check the address that a proxy connects to
			DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool},
			DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

// Send delivers a message once, within the target's timeout. body is the message as JSON. after is
// the pause that a webhook requests before the next attempt, or 0.
func (s *Sender) Send(ctx context.Context, m *Message, body []byte) (after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	switch s.Kind() {
	case "webhook":
		return s.post(ctx, m, body)
	case "command":
		return 0, s.command(ctx, m, body)
	}
	return 0, s.mail(ctx, m)
}

// brief returns text on one line, cut short.
func brief(text []byte) string {
	line := strings.Join(strings.Fields(strings.ToValidUTF8(string(text), "?")), " ")
	if len(line) > 200 {
		line = line[:200] + "..."
	}
	return line
}
