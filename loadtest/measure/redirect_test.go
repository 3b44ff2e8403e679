package measure

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/require"
	"weir/storage"
)

func TestRedirectsAndWaitsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecorder(nil, "")
		m := r.Meter()
		time.Sleep(time.Second)
		m.StartAt(storage.Read, r.Now(), 200*time.Millisecond) // planned earlier: that is not the redirector's fault
		time.Sleep(20 * time.Millisecond)
		m.Reached(storage.Redirected)
		m.ServedBy("ds1:1094")
		time.Sleep(20 * time.Millisecond)
		m.Reached(storage.Redirected) // only the first counts
		time.Sleep(10 * time.Millisecond)
		m.End(&storage.Result{Waits: 3, Waited: 1500 * time.Millisecond, Reopened: 1}, nil)
		m.Start(storage.Read)
		m.Reached(storage.Redirected)
		m.End(&storage.Result{Waits: 1, Waited: 500 * time.Millisecond}, syscall.ECONNRESET) // failures waited as well
		m.Start(storage.Read)
		m.End(&storage.Result{}, nil) // not redirected
		v, _ := total(r)
		if v.Waits != 4 || v.Waited != 2 || v.Reopened != 1 {
			t.Errorf("%d waits of %v s, %d reopened, want 4 of 2 s and 1", v.Waits, v.Waited, v.Reopened)
		}
		if n, top := v.Redirect.Count(), v.Redirect.Max(); n != 2 || top < .0198 || top > .0202 {
			t.Errorf("%d redirects of at most %v s, want 2 of at most 0.02", n, top)
		}
		if v, _ := total(r); v.Waits != 0 || v.Waited != 0 || v.Reopened != 0 || v.Redirect.Count() != 0 {
			t.Errorf("a second cut tells the same again: %+v", v)
		}
	})
}

func TestHandshakesAreCounted(t *testing.T) {
	r := NewRecorder(nil, "")
	m := r.Meter()
	m.Start(storage.Read)
	m.End(&storage.Result{Handshakes: 2, Resumed: 1, Handshake: 20 * time.Millisecond}, nil)
	m.Start(storage.Read)
	m.End(&storage.Result{Handshakes: 1, Handshake: 10 * time.Millisecond}, syscall.ECONNRESET)
	m.Start(storage.Read)
	m.End(&storage.Result{}, nil) // on a kept session
	v, _ := total(r)
	if n, sum := v.Handshake.Count(), v.Handshake.Sum(); v.Handshakes != 3 || v.Resumed != 1 || n != 2 || sum < .0297 || sum > .0303 {
		t.Errorf("%d handshakes, %d resumed, %d of %v s in all, want 3, 1 and 2 of 0.03 s", v.Handshakes, v.Resumed, n, sum)
	}
	b, err := json.Marshal(&v)
	require.NoError(t, err)
	var back Interval
	if err := json.Unmarshal(b, &back); err != nil || back.Handshakes != 3 || back.Resumed != 1 || back.Handshake.Count() != 2 {
		t.Errorf("%+v, %v from %s", back, err, b)
	}
}

// A worker's lines have the redirects, and omit fields without values.
func TestRedirectsSurviveJSON(t *testing.T) {
	v := Interval{Sum: Sum{Waits: 2, Waited: 1.5, Reopened: 3}}
	b, err := json.Marshal(&v)
	if err != nil || strings.Contains(string(b), "redirect_seconds") {
		t.Fatalf("%s, %v", b, err)
	}
	v.Redirect.Record(time.Second)
	if b, err = json.Marshal(&v); err != nil {
		t.Fatal(err)
	}
	var back Interval
	require.NoError(t, json.Unmarshal(b, &back))
	back.Add(&v)
	if back.Waits != 4 || back.Waited != 3 || back.Reopened != 6 || back.Redirect.Count() != 2 || back.Redirect.Sum() != 2 {
		t.Errorf("%+v", back)
	}
}

// Failures of a redirector and of a data server are distinguished, also of a data server that no
// client could ever connect to.
func TestFailuresCountWhereTheyHappen(t *testing.T) {
	r := NewRecorder(nil, "")
	m := r.Meter()
	fail := func(served, blamed string) {
		m.Start(storage.Read)
		if served != "" {
			m.Reached(storage.Redirected)
			m.ServedBy(served)
		}
		m.End(&storage.Result{}, &storage.OpError{Kind: storage.Read, URL: "root://x//y", Server: blamed, Err: syscall.ECONNREFUSED})
	}
	fail("", "")             // the redirector itself
	fail("", "ds1:1094")     // named by it, never reached
	fail("ds1:1094", "")     // while it served
	fail("ds1:1094", "ds2:") // the next server
	rows, events := r.Cut(1, Measured, storage.Read)
	got := map[string]int64{}
	for _, v := range rows {
		got[v.Server] = v.Failed[storage.Refused]
	}
	if got[""] != 1 || got["ds1:1094"] != 2 || got["ds2:"] != 1 {
		t.Errorf("failures by server: %v", got)
	}
	if len(events) != examplesPerClass {
		t.Errorf("%d errors kept", len(events))
	}
	m.Start(storage.Read)
	m.End(&storage.Result{}, errors.New("plain"))
	if rows, _ = r.Cut(1, Measured, storage.Read); rows[0].Failed[storage.Other]+rows[1].Failed[storage.Other]+
		rows[2].Failed[storage.Other] != 1 {
		t.Error("an error without a server is lost")
	}
}

func TestInventedServersDoNotFillMemory(t *testing.T) {
	r := NewRecorder(nil, "")
	m := r.Meter()
	const servers = 3 * mostNamed
	for i := range servers {
		m.Start(storage.Stat)
		m.ServedBy(fmt.Sprintf("ds%d:1094", i))
		m.End(&storage.Result{}, nil)
	}
	rows, _ := r.Cut(1, Measured, storage.Stat)
	done, others := int64(0), int64(0)
	for _, v := range rows {
		done += v.Done
		if v.Server == Others {
			others = v.Done
		}
	}
	if len(rows) != mostNamed+2 || done != servers || others != servers-mostNamed {
		t.Errorf("%d lines with %d operations, %d of them of others", len(rows), done, others)
	}
}

func TestMeteringRedirectsAllocatesNothing(t *testing.T) {
	m, res := NewRecorder(nil, "").Meter(), &storage.Result{Waits: 1, Waited: time.Second, Reopened: 1}
	redirected := func() {
		m.Start(storage.Read)
		m.Reached(storage.Redirected)
		m.ServedBy("ds1:1094")
		m.Reached(storage.FirstByte)
		m.Moved(4096)
		m.End(res, nil)
	}
	redirected()
	if n := testing.AllocsPerRun(1000, redirected); n != 0 {
		t.Errorf("%v allocations an operation, want none", n)
	}
}
