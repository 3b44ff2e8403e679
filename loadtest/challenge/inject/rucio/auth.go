package rucio

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"weir/loadtest/challenge/inject/service"
	"weir/storage"
)

// renewBefore is the rest of a token's life at which it is renewed. Rucio's tokens live for an hour.
const renewBefore = 10 * time.Minute

// A session has the token of Rucio's API. It is safe for concurrent use.
type session struct {
	client  *service.Client // of the authentication server
	cred    *storage.Credentials
	account string
	path    string // of the authentication; "": the token is that of inject.auth

	mu    sync.Mutex
	token string
	until time.Time
}

// newSession returns the session of an account with the method that the credentials have.
func newSession(url, account string, cred *storage.Credentials) (*session, error) {
	s := &session{cred: cred, account: account}
	switch {
	case cred.Token != "":
	case cred.Password != "":
		s.path = "/auth/userpass"
	case cred.From.ProxyFile != "":
		s.path = "/auth/x509_proxy"
	case cred.From.CertFile != "":
		s.path = "/auth/x509"
	default:
		return nil, errors.New("inject.auth: Rucio needs user and password, a certificate, a proxy or a token")
	}
	var err error
	s.client, err = service.NewClient(url, *cred, s.authenticate)
	return s, err
}

// authenticate adds the credentials to a request for a token.
func (s *session) authenticate(_ context.Context, r *http.Request) error {
	r.Header.Set("X-Rucio-Account", s.account)
	if s.path == "/auth/userpass" {
		r.Header.Set("X-Rucio-Username", s.cred.User)
		r.Header.Set("X-Rucio-Password", s.cred.Secret().Current())
	}
	return nil
}

// authorize adds the token to a request. It requests a token if the last one ends soon.
func (s *session) authorize(ctx context.Context, r *http.Request) error {
	r.Header.Set("X-Rucio-Account", s.account)
	if s.path == "" {
		r.Header.Set("X-Rucio-Auth-Token", s.cred.Bearer().Current())
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Until(s.until) < renewBefore {
		if err := s.renew(ctx); err != nil && (s.token == "" || time.Now().After(s.until)) {
			return err
		}
	}
	r.Header.Set("X-Rucio-Auth-Token", s.token)
	return nil
}

// renew requests a token. The caller holds the lock.
func (s *session) renew(ctx context.Context) error {
	header, _, err := s.client.Do(ctx, service.Request{Method: http.MethodGet, Path: s.path, Accept: "*/*", Urgent: true})
	if err != nil {
		return fmt.Errorf("log in to Rucio as account %s: %w", s.account, err)
	}
	token := header.Get("X-Rucio-Auth-Token")
	if token == "" {
		return fmt.Errorf("log in to Rucio as account %s: the response has no token: is inject.url the address of Rucio?", s.account)
	}
	s.token, s.until = token, time.Now().Add(2*renewBefore)
	if until, err := time.Parse(dateFormat, header.Get("X-Rucio-Auth-Token-Expires")); err == nil {
		s.until = s.client.Local(until)
	}
	return nil
}

// dateFormat is the notation of times in Rucio's responses.
const dateFormat = "Mon, 02 Jan 2006 15:04:05 MST"

// expire makes the next request ask for a new token, after a response that refused it.
func (s *session) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = time.Time{}
}

func (s *session) close() { s.client.Close() }
