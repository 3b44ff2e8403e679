package ftp

import (
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tcp"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/storagetest"
)

// TestReadsAllocateNothing checks that a read allocates nothing except for opening and closing a
// data connection: FTP requires a new data connection for each transfer.
func TestReadsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	g := labtest.Start(t, lab.GridFTPConfig{})
	place(t, g, "f", 1, 300_000)
	u := storagetest.TargetOf(t, g.URL, storage.Credentials{}).URL
	c := serviceAt(t, g.URL, storage.Credentials{}).Client()
	defer c.Close()
	ctx := t.Context()
	d := tcp.NewDialer(nil)
	defer d.Close()
	connect := func() *tcp.Conn {
		conn, err := d.Dial(ctx, u.Hostname(), uint16(mustPort(t, u.Port())), time.Now().Add(time.Minute))
		require.NoError(t, err)
		return conn
	}
	control := connect() // the first connection under a context has more allocations
	dial := testing.AllocsPerRun(50, func() { _ = connect().Close() })
	_ = control.Close() // nothing was sent
	for name, op := range map[string]storage.Op{
		"whole": {Size: 300_000},
		"part":  {Size: 300_000, Ranges: []storage.Range{{Offset: 1000, Length: 100_000}}},
		"wide":  {Size: 300_000, Ahead: 3},
	} {
		op.Kind, op.Path, op.Timeout = storage.Read, "f", time.Minute
		var p silent
		got := testing.AllocsPerRun(50, func() {
			if _, err := c.Do(ctx, &op, &p); err != nil {
				t.Fatal(err)
			}
		})
		most := dial
		if op.Ahead > 1 { // its data connections are kept
			most = 0
		}
		if got > most {
			t.Errorf("%s: %v allocations for each operation, %v for its data connection", name, got, most)
		}
	}
}

// silent is a Progress that ignores everything.
type silent struct{}

func (*silent) Reached(storage.Phase) {}
func (*silent) Moved(int)             {}
func (*silent) ServedBy(string)       {}
