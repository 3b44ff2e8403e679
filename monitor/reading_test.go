package monitor

import (
	"bytes"
	"context"
	"errors"
	"testing"
)

// sayings returns one response after the other.
type sayings [][]byte

func (a *sayings) Servers(context.Context) ([]string, error) { return nil, nil }

func (a *sayings) Report(context.Context, string) ([]byte, error) {
	if len(*a) == 0 {
		return nil, errors.ErrUnsupported
	}
	b := (*a)[0]
	*a = (*a)[1:]
	return b, nil
}

func TestReading(t *testing.T) {
	first := realStatistics(t, "server.xml")
	later := bytes.Replace(first, []byte("<rd>3</rd>"), []byte("<rd>45</rd>"), 1)
	again := bytes.Replace(first, []byte(`pid="`), []byte(`pid="7`), 1)
	if bytes.Equal(first, later) || bytes.Equal(first, again) {
		t.Fatal("server.xml is not what it was")
	}
	from := &sayings{first, later, again, []byte("<html>")}
	var readings [3]Reading
	for i := range readings {
		var err error
		if readings[i], err = Read(t.Context(), from, "a:1094"); err != nil {
			t.Fatal(err)
		}
	}
	if s, ok := readings[1].Since(readings[0]); !ok || s.Ops["read"] != 42 || s.Operations() != 42 {
		t.Errorf("%v %+v", ok, s)
	}
	if v, ok := readings[1].Sample(readings[0]); !ok || v.Service == nil || v.Seconds < 0 || v.Time.IsZero() {
		t.Errorf("%v %+v", ok, v)
	}
	if s, ok := readings[2].Since(readings[1]); ok {
		t.Errorf("another run of the server is compared: %+v", s)
	}
	if _, ok := readings[0].Since(Reading{}); ok {
		t.Error("compared with nothing")
	}
	for range 2 { // no statistics; no answer
		if _, err := Read(t.Context(), from, "a:1094"); err == nil {
			t.Error("no error")
		}
	}
}
