package storage

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// A porter is the service of an endpoint; its clients report its servers as serving.
type porter struct {
	name   string
	says   []string // arguments of ServedBy
	closed bool
}

func (p *porter) Client() Client { return porterClient{p} }
func (p *porter) Close() error   { p.closed = true; return nil }

type porterClient struct{ p *porter }

func (c porterClient) Do(_ context.Context, _ *Op, p Progress) (Result, error) {
	for _, s := range c.p.says {
		p.ServedBy(s)
	}
	return Result{}, nil
}
func (porterClient) Close() error { return nil }

// An asking porter is a porter that reports its servers.
type asking struct {
	porter
	servers []string
	err     error
}

func (a *asking) Servers(context.Context) ([]string, error) { return a.servers, a.err }
func (a *asking) Report(_ context.Context, server string) ([]byte, error) {
	return []byte(a.name + " on " + server), nil
}

type servedBy []string

func (*servedBy) Reached(Phase)        {}
func (*servedBy) Moved(int)            {}
func (s *servedBy) ServedBy(to string) { *s = append(*s, to) }

func TestClientsAreDealtOverEndpoints(t *testing.T) {
	a, b := &porter{name: "a"}, &porter{name: "b", says: []string{"", "data:1", ""}}
	s := MultiEndpoint([]Endpoint{{"a:1", a}, {"b:1", b}})
	for number, want := range []servedBy{{"a:1"}, {"b:1", "b:1", "data:1", "b:1"}, {"a:1"}, {"b:1", "b:1", "data:1", "b:1"}} {
		var got servedBy
		if _, err := ClientOf(s, number).Do(t.Context(), &Op{}, &got); err != nil || !slices.Equal(got, want) {
			t.Errorf("client %d: %v, %v, want %v", number, err, got, want)
		}
	}
	var got servedBy
	if _, err := s.Client().Do(t.Context(), &Op{}, &got); err != nil || !slices.Equal(got, servedBy{"a:1"}) {
		t.Errorf("without a number: %v, %v", err, got)
	}
	if _, asks := s.(Reporter); asks {
		t.Error("these services cannot be asked")
	}
	if err := s.Close(); err != nil || !a.closed || !b.closed {
		t.Errorf("%v, closed %v and %v", err, a.closed, b.closed)
	}
	if c := ClientOf(a, 5); c != (porterClient{a}) {
		t.Errorf("of a service without endpoints: %v", c)
	}
}

func TestEndpointsReport(t *testing.T) {
	a := &asking{porter: porter{name: "a"}, servers: []string{"a:1", "x:1"}}
	b := &asking{porter: porter{name: "b"}, servers: []string{"b:1", "x:1"}}
	s, ok := MultiEndpoint([]Endpoint{{"a:1", a}, {"b:1", b}}).(Reporter)
	if !ok {
		t.Fatal("is no Reporter")
	}
	if all, err := s.Servers(t.Context()); err != nil || !slices.Equal(all, []string{"a:1", "x:1", "b:1"}) {
		t.Errorf("%v, %v", all, err)
	}
	if text, err := s.Report(t.Context(), "b:1"); err != nil || string(text) != "b on b:1" {
		t.Errorf("%q, %v", text, err)
	}
	a.servers, a.err = nil, errors.New("shut")
	if all, err := s.Servers(t.Context()); err != nil || len(all) != 2 {
		t.Errorf("one endpoint is down: %v, %v", all, err)
	}
	if b.servers, b.err = nil, a.err; true {
		if _, err := s.Servers(t.Context()); !errors.Is(err, a.err) {
			t.Errorf("all endpoints are down: %v", err)
		}
	}
}

func TestAnEndpointAllocatesNothing(t *testing.T) {
	c := ClientOf(MultiEndpoint([]Endpoint{{"a:1", &porter{says: []string{""}}}}), 3)
	op, p := &Op{}, &unheard{}
	if n := testing.AllocsPerRun(100, func() { _, _ = c.Do(t.Context(), op, p) }); n > 0 {
		t.Errorf("%v allocations an operation", n)
	}
}

type unheard struct{}

func (*unheard) Reached(Phase)   {}
func (*unheard) Moved(int)       {}
func (*unheard) ServedBy(string) {}
