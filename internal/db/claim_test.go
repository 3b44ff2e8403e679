package db_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"weir/internal/db"
	"weir/internal/require"
	"weir/lab/dbtest"
)

// A name is claimed by one process at a time; the error names the holder, and the name is free
// again after its Close.
func TestClaim(t *testing.T) {
	t.Parallel()
	url := dbtest.Server(t)
	one, other := connect(t, url), connect(t, url)
	c, err := one.Claim(t.Context(), "the queue", "Ann's process")
	require.NoError(t, err)
	if _, err := other.Claim(t.Context(), "the queue", "Bob's process"); !errors.Is(err, db.ErrTaken) ||
		!strings.Contains(err.Error(), "by Ann's process, which came from ") {
		t.Errorf("it is claimed twice: %v", err)
	}
	garden, err := other.Claim(t.Context(), "the garden", "Bob's process")
	require.NoError(t, err)
	if err := errors.Join(c.Close(), garden.Close(), c.Close()); err != nil {
		t.Error(err)
	}
	if c, err = other.Claim(t.Context(), "the queue", "Bob's process"); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// A claim whose connection was broken is taken anew; if another process was faster, the first
// process gets an error.
func TestClaimIsKept(t *testing.T) {
	t.Parallel()
	url := dbtest.Server(t)
	one, other := connect(t, url), connect(t, url)
	c, err := one.Claim(t.Context(), "the queue", "Ann's process")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	kept := make(chan error, 1)
	go func() { kept <- c.Keep(ctx) }()
	first := holders(t, other)
	breakAll(t, other)
	for end := time.Now().Add(time.Minute); ; {
		if now := holders(t, other); len(now) == 1 && now[0] != first[0] {
			break
		} else if time.Now().After(end) {
			t.Fatalf("it is not taken anew: %v", now)
		}
		<-time.After(10 * time.Millisecond)
	}
	cancel()
	if err := errors.Join(<-kept, c.Close()); err != nil {
		t.Error(err)
	}

	if c, err = one.Claim(t.Context(), "the queue", "Ann's process"); err != nil {
		t.Fatal(err)
	}
	breakAll(t, other)
	c2, err := other.Claim(t.Context(), "the queue", "Bob's process")
	require.NoError(t, err)
	if err := c.Keep(t.Context()); !errors.Is(err, db.ErrTaken) || !strings.Contains(err.Error(), "Bob's process") {
		t.Errorf("another has it: %v", err)
	}
	if err := errors.Join(c.Close(), c2.Close()); err != nil {
		t.Error(err)
	}
}

// A file belongs to one process in any case.
func TestClaimOfAFile(t *testing.T) {
	t.Parallel()
	d := connect(t, dbtest.File(t))
	c, err := d.Claim(t.Context(), "the queue", "Ann's process")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := errors.Join(c.Keep(ctx), c.Close()); err != nil {
		t.Error(err)
	}
}

func connect(t *testing.T, url string) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), url, db.Options{Conns: 2})
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

const claims = "SELECT l.pid FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE l.locktype = 'advisory' AND d.datname = " +
	"current_database()"

// holders returns the processes of the server that hold claims.
func holders(t *testing.T, d *db.DB) (all []int64) {
	t.Helper()
	err := d.Read(t.Context(), func(tx *db.Tx) (err error) {
		all, err = db.Column[int64](tx, claims)
		return err
	})
	require.NoError(t, err)
	return all
}

// breakAll breaks the connections of all claims.
func breakAll(t *testing.T, d *db.DB) {
	t.Helper()
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		_, err := tx.Exec("SELECT pg_terminate_backend(pid) FROM (" + claims + ") AS c")
		return err
	})
	require.NoError(t, err)
}

// A waiting caller gets the claim when it is free, is informed of the holder meanwhile, and can
// give up.
func TestAwaitClaim(t *testing.T) {
	t.Parallel()
	url := dbtest.Server(t)
	one, other := connect(t, url), connect(t, url)
	c, err := one.Claim(t.Context(), "the queue", "Ann's process")
	require.NoError(t, err)
	enough := errors.New("enough")
	if _, err := other.AwaitClaim(t.Context(), "the queue", "Bob's process", func(error) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("%v, want that it gives up", err)
	}
	waits, got := make(chan error), make(chan error)
	go func() {
		second, err := other.AwaitClaim(t.Context(), "the queue", "Bob's process", func(reason error) error { waits <- reason; return nil })
		if err == nil {
			err = second.Close()
		}
		got <- err
	}()
	if reason := <-waits; !errors.Is(reason, db.ErrTaken) || !strings.Contains(reason.Error(), "Ann's process") {
		t.Errorf("it waits because %v", reason)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	for {
		select {
		case <-waits: // a moment of nobody's
			continue
		case err := <-got:
			if err != nil {
				t.Error(err)
			}
		}
		break
	}
}
