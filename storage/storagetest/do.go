package storagetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/content"
	"weir/internal/require"
	"weir/storage"
)

// An outcome has the result of an operation and its progress reports.
type outcome struct {
	storage.Result
	err   error
	heard *listener
}

// do runs op to its end and checks all that is true of every operation.
func (s *suite) do(t *testing.T, c storage.Client, op storage.Op) outcome {
	t.Helper()
	return s.doIn(t.Context(), t, c, op, &listener{})
}

// must calls do for operations that have to succeed.
func (s *suite) must(t *testing.T, c storage.Client, op storage.Op) outcome {
	t.Helper()
	out := s.do(t, c, op)
	if out.err != nil {
		t.Fatalf("%s %q: %v", op.Kind, op.Path, out.err)
	}
	return out
}

func (s *suite) doIn(ctx context.Context, t *testing.T, c storage.Client, op storage.Op, heard *listener) outcome {
	t.Helper()
	out := outcome{heard: heard}
	s.all = append(s.all, heard)
	before := op
	before.Ranges = append([]storage.Range(nil), op.Ranges...)
	done := make(chan struct{})
	go func() {
		defer close(done)
		out.Result, out.err = c.Do(ctx, &op, heard)
		heard.end()
	}()
	bound := time.NewTimer(s.o.Bound)
	defer bound.Stop()
	select {
	case <-done:
	case <-bound.C:
		t.Fatalf("%s %q hangs: not back after %v", op.Kind, op.Path, s.o.Bound)
	}
	if d := cmp.Diff(before, op, cmp.Transformer("none", func(r []storage.Range) []storage.Range {
		return append([]storage.Range{}, r...)
	})); d != "" {
		t.Errorf("%s %q: Do changed its Op:\n%s", op.Kind, op.Path, d)
	}
	s.audit(t, &op, out)
	return out
}

// audit checks the rules for every operation, successful or failed.
func (s *suite) audit(t *testing.T, op *storage.Op, out outcome) {
	t.Helper()
	for _, fault := range out.heard.faults(op.Kind) {
		t.Errorf("%s %q: %s", op.Kind, op.Path, fault)
	}
	moved := out.heard.moved
	switch {
	case out.Discarded < 0 || out.Discarded > moved:
		t.Errorf("%s %q: %d bytes discarded of %d moved", op.Kind, op.Path, out.Discarded, moved)
	case out.Discarded > 0 && op.Sum != "":
		t.Errorf("%s %q: %d bytes discarded, but their checksum was wanted", op.Kind, op.Path, out.Discarded)
	case out.Wire < 0 || out.Wire > 0 && out.Wire < moved && out.err == nil && op.Kind != storage.Copy:
		t.Errorf("%s %q: %d bytes on the wire for %d of payload", op.Kind, op.Path, out.Wire, moved)
	case moved > 0 && op.Kind != storage.Read && op.Kind != storage.Write && op.Kind != storage.Copy:
		t.Errorf("%s %q: %d payload bytes, but it has none", op.Kind, op.Path, moved)
	}
	if out.err != nil {
		s.auditError(t, op, out.err)
	}
}

func (s *suite) auditError(t *testing.T, op *storage.Op, err error) {
	t.Helper()
	var e *storage.OpError
	switch {
	case !errors.As(err, &e):
		t.Errorf("%s %q: error %T %q is no *storage.OpError", op.Kind, op.Path, err, err)
	case e.Kind != op.Kind:
		t.Errorf("%s %q: its error is one of %s: %v", op.Kind, op.Path, e.Kind, err)
	case e.URL == "" || e.Err == nil:
		t.Errorf("%s %q: its error does not say where or why: %#v", op.Kind, op.Path, e)
	}
	secrets := []string{s.target.Cred.Password, s.target.Cred.Token}
	if o := s.target.Origin; o != nil {
		secrets = append(secrets, o.Cred.Password, o.Cred.Token)
	}
	for _, secret := range secrets {
		if secret != "" && strings.Contains(err.Error(), secret) {
			t.Errorf("%s %q: its error tells a secret", op.Kind, op.Path)
		}
	}
}

// file makes a file of package content on the target and removes it after the test.
func (s *suite) file(t *testing.T, c storage.Client, name string, seed uint64, size int64) string {
	t.Helper()
	p := s.path(t, name)
	if !s.offers(storage.Write) {
		if s.o.Put == nil {
			t.Fatalf("driver %s does not write: Options.Put is needed", s.driver.Name)
		}
		s.o.Put(t, p, seed, size)
		return p
	}
	out := s.must(t, c, storage.Op{Kind: storage.Write, Path: p, Size: size, Seed: seed})
	if out.heard.moved != size {
		t.Errorf("write %q: %d bytes moved of %d", p, out.heard.moved, size)
	}
	s.removeAfter(t, p)
	return p
}

// removeAfter removes the files of a test. Its own tests check Remove; here it only tidies up, so
// missing files are fine.
func (s *suite) removeAfter(t *testing.T, p string) {
	if !s.offers(storage.Remove) {
		return
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.o.Bound)
		defer cancel()
		svc, err := s.driver.Open(ctx, s.target)
		if err != nil {
			t.Errorf("Open: %v", err)
			return
		}
		c := svc.Client()
		_, err = c.Do(ctx, &storage.Op{Kind: storage.Remove, Path: p}, &listener{})
		if err != nil && storage.Classify(err) != storage.NotFound && !s.lacks(ClearErrors) {
			t.Errorf("tidying up: %v", err)
		}
		if err := errors.Join(c.Close(), svc.Close()); err != nil {
			t.Errorf("tidying up: %v", err)
		}
	})
}

// holds fails unless the file p has the content of seed and size.
func (s *suite) holds(t *testing.T, c storage.Client, p string, seed uint64, size int64) {
	t.Helper()
	op := storage.Op{Kind: storage.Read, Path: p, Size: size}
	if !s.lacks(ReadSums) {
		op.Sum = s.o.Sum
	}
	out := s.must(t, c, op)
	s.checkPayload(t, &op, out, seed, []storage.Range{{Length: size}})
	if out.Size >= 0 && out.Size != size {
		t.Errorf("read %q: the file has %d bytes, the result says %d", p, size, out.Size)
	}
}

// checkPayload compares moved bytes and checksum with the content of the ranges.
func (s *suite) checkPayload(t *testing.T, op *storage.Op, out outcome, seed uint64, ranges []storage.Range) {
	t.Helper()
	h, err := content.NewHash(s.o.Sum)
	require.NoError(t, err)
	want := int64(0)
	for _, r := range ranges {
		b := make([]byte, r.Length)
		content.Fill(b, seed, r.Offset)
		h.Write(b)
		want += r.Length
	}
	if out.heard.moved != want {
		t.Errorf("read %q %v: %d bytes moved, want %d", op.Path, op.Ranges, out.heard.moved, want)
	}
	if sum := content.Text(s.o.Sum, h); op.Sum != "" && out.Sum != sum {
		t.Errorf("read %q %v: checksum %s, want %s", op.Path, op.Ranges, out.Sum, sum)
	}
}

// A listener receives an operation's progress and records its errors. Only its first lines are safe
// against the faults that it looks for.
type listener struct {
	busy    atomic.Bool // a call is going on
	over    atomic.Bool // Do has returned
	clashes atomic.Int64
	late    atomic.Int64

	moved   int64
	calls   int
	first   int64 // bytes of the first call of Moved
	bad     []string
	phases  []storage.Phase
	servers []string
	onMoved func() // called at every Moved
}

// enter reports whether a call is in order; leave ends such a call.
func (l *listener) enter() bool {
	if l.over.Load() {
		l.late.Add(1)
		return false
	}
	if !l.busy.CompareAndSwap(false, true) {
		l.clashes.Add(1)
		return false
	}
	return true
}

func (l *listener) leave() { l.busy.Store(false) }

func (l *listener) end() { l.over.Store(true) }

// Reached implements storage.Progress.
func (l *listener) Reached(p storage.Phase) {
	if !l.enter() {
		return
	}
	defer l.leave()
	if p >= storage.Phases {
		l.bad = append(l.bad, fmt.Sprintf("reached phase %d, which does not exist", p))
	}
	l.phases = append(l.phases, p)
}

// Moved implements storage.Progress.
func (l *listener) Moved(n int) {
	if !l.enter() {
		return
	}
	defer l.leave()
	if n < 0 {
		l.bad = append(l.bad, fmt.Sprintf("moved %d bytes", n))
	}
	l.moved += int64(n)
	if l.calls == 0 {
		l.first = int64(n)
	}
	l.calls++
	if l.onMoved != nil {
		l.onMoved()
	}
}

// ServedBy implements storage.Progress.
func (l *listener) ServedBy(host string) {
	if !l.enter() {
		return
	}
	defer l.leave()
	l.servers = append(l.servers, host)
}

func (l *listener) reached(p storage.Phase) bool { return slices.Contains(l.phases, p) }

// faults lists the errors in the progress of an operation of kind k.
func (l *listener) faults(k storage.Kind) []string {
	bad := l.bad
	if n := l.clashes.Load(); n > 0 {
		bad = append(bad, fmt.Sprintf("%d calls of Progress while another was going on", n))
	}
	if n := l.late.Load(); n > 0 {
		bad = append(bad, fmt.Sprintf("%d calls of Progress after Do had returned", n))
	}
	for i, p := range l.phases {
		switch {
		case slices.Contains(l.phases[:i], p):
			bad = append(bad, fmt.Sprintf("phase %d reached twice: %v", p, l.phases))
		case i > 0 && p < l.phases[i-1] && l.phases[i-1] != storage.Redirected:
			bad = append(bad, fmt.Sprintf("phases out of order: %v", l.phases))
		}
	}
	if (k == storage.Read || k == storage.Copy) && (l.moved > 0) != l.reached(storage.FirstByte) {
		bad = append(bad, fmt.Sprintf("%d bytes moved, but phases are %v", l.moved, l.phases))
	}
	return bad
}
