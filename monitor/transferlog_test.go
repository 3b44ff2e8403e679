package monitor

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
)

// line is one as globus-gridftp-server 13.24 writes it.
func line(file, start, date, kind string, bytes int64, code int) string {
	return fmt.Sprintf("DATE=%s HOST=localhost PROG=globus-gridftp-server NL.EVNT=FTP_INFO START=%s USER=anonymous FILE=%s BUFFER=131072 "+
		"BLOCK=262144 NBYTES=%d VOLUME=/ STREAMS=1 STRIPES=1 DEST=[127.0.0.1] TYPE=%s CODE=%d TASKID=none\n", date, start, file,
		bytes, kind, code)
}

func TestTransferSpans(t *testing.T) {
	s := spans{seconds: map[int64]*TransfersSpan{}}
	for _, l := range []string{
		line("/a", "20261122120000.500000", "20261122120002.500000", "RETR", 1001, 226),
		line("/b c NBYTES=7 CODE=999 DATE=1", "20261122120001.000000", "20261122120001.250000", "STOR", 50, 226),
		line("/d", "20261122120001.900000", "20261122120002.000000", "RETR", 10, 426),
		line("/e", "20261122120002.5", "20261122120002.5", "ERET", 3, 226),           // microseconds without leading zeros
		line("/f", "20261122120000.000000", "20261122115959.000000", "RETR", 9, 226), // the clock was set back
		line("/g", "20261122110000.000000", "20261122120000.000000", "RETR", 1<<40, 226),
		line("/h", "20261122120001.000000", "20261122120001.100000", "MLSD", 5000, 226),
	} {
		x, err := parseTransfer([]byte(strings.TrimSuffix(l, "\n")))
		require.NoError(t, err)
		s.add(x)
	}
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return when
	}
	want := []TransfersSpan{
		{at("2026-11-22T11:00:00Z"), 3600, 1 << 40, 1},
		{at("2026-11-22T11:59:59Z"), 0.001, 9, 0},
		{at("2026-11-22T12:00:00.5Z"), 0.5, 250, 1},
		{at("2026-11-22T12:00:01Z"), 1, 500 + 50 + 10, 1.35},
		{at("2026-11-22T12:00:02Z"), 0.5, 251 + 3, 1},
	}
	got := s.whole()
	for i := range want {
		if i >= len(got.Spans) || !got.Spans[i].Begin.Equal(want[i].Begin) || math.Abs(got.Spans[i].Seconds-want[i].Seconds) > 1e-9 ||
			got.Spans[i].Moved != want[i].Moved || fmt.Sprintf("%.6f", got.Spans[i].Running) != fmt.Sprintf("%.6f", want[i].Running) {
			t.Errorf("%d: %+v, want %+v", i, got.Spans[i], want[i])
		}
	}
	if got.Done != 6 || got.Failed != 1 || len(got.Spans) != len(want) {
		t.Errorf("%+v", got)
	}
}

func TestLinesThatAreNoTransfers(t *testing.T) {
	good := line("/a", "20261122120000.500000", "20261122120002.500000", "RETR", 1001, 226)
	for _, c := range [][2]string{
		{"", "is not a transfer"},
		{"[123] Sun Nov 22 12:00:00 2026 :: Server started", "is not a transfer"},
		{strings.Replace(good, "START=20261122", "START=20261322", 1), "invalid time"},
		{strings.Replace(good, "NBYTES=1001", "NBYTES=-1", 1), "invalid NBYTES"},
		{strings.Replace(good, ".500000", ".5000000", 1), "invalid time"},
		{strings.Replace(good, " CODE=226", "", 1), "is not a transfer"},
	} {
		if _, err := parseTransfer([]byte(c[0])); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%q: %v, want %q", c[0], err, c[1])
		}
	}
}

// TestFollowingALog: from its end, over an unfinished line, a rotation, a truncation, and a file
// that is created later.
func TestFollowingALog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write := func(flag int, text string) {
		f, err := os.OpenFile(path, flag|os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		if _, err = f.WriteString(text); err == nil {
			err = f.Close()
		}
		require.NoError(t, err)
	}
	one := func(bytes int64) string {
		return line("/a", "20261122120000.100000", "20261122120000.500000", "RETR", bytes, 226)
	}
	write(0, one(999))
	log, err := newTransferLog(path, newClock())
	require.NoError(t, err)
	look := func(what string, want int64) {
		t.Helper()
		s, err := log.look(t.Context())
		sum := int64(0)
		if s != nil {
			for _, x := range s.Transfers.Spans {
				sum += x.Moved
			}
		}
		if sum != want || err != nil {
			t.Errorf("%s: %d bytes and %v, want %d", what, sum, err, want)
		}
	}
	look("nothing new", 0)
	write(os.O_APPEND, one(1)+one(2)[:40])
	look("one and a half", 1)
	write(os.O_APPEND, one(2)[40:])
	look("the other half", 2)
	write(os.O_APPEND, one(4))
	require.NoError(t, os.Rename(path, path+".1"))
	look("moved away", 4)
	write(0, one(8))
	look("its successor", 8)
	write(os.O_TRUNC, one(7)[:60]+"\n"+"\n")
	if _, err := log.look(t.Context()); err == nil || !strings.Contains(err.Error(), "is not a transfer") {
		t.Errorf("%v", err)
	}
	write(os.O_TRUNC, "\n")
	look("emptied", 0)
	write(os.O_APPEND, "nonsense\n"+one(16))
	look("odd lines are reported once", 16)
	log.close()

	path = filepath.Join(t.TempDir(), "later")
	if log, err = newTransferLog(path, newClock()); err != nil {
		t.Fatal(err)
	}
	if _, err := log.look(t.Context()); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("%v", err)
	}
	look("reported once", 0)
	write(0, one(32))
	look("it came", 32)
	log.close()
	if _, err := newTransferLog(t.TempDir(), newClock()); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("%v", err)
	}
}

func FuzzTransferLog(f *testing.F) {
	f.Add([]byte(line("/a", "20261122120000.500000", "20261122120002.500000", "RETR", 1001, 226)))
	f.Add([]byte(line("/b c NBYTES=7", "20161122120000.5", "20261122120002.5", "STOR", 1<<49, 500)))
	f.Fuzz(func(t *testing.T, b []byte) {
		log, sums := &transferLog{}, spans{seconds: map[int64]*TransfersSpan{}}
		moved := int64(0)
		take := func(l []byte) {
			if x, err := parseTransfer(l); err == nil && moved < 1<<49 {
				if x.file {
					moved += x.moved
				}
				sums.add(x)
			}
		}
		log.cut(b[:len(b)/2], take)
		log.cut(b[len(b)/2:], take)
		transfers := sums.whole()
		if _, err := json.Marshal(transfers); err != nil {
			t.Fatal(err)
		}
		for _, s := range transfers.Spans {
			moved -= s.Moved
			if s.Moved < 0 || s.Running < 0 || s.Seconds <= 0 {
				t.Fatalf("%+v", s)
			}
		}
		if moved != 0 {
			t.Fatalf("%d bytes are lost of %q", moved, b)
		}
	})
}
