package fts

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
	"weir/transfer"
	"weir/transfer/queue"
)

// The fast path for the fields that Rucio polls returns the same values as the general path, and
// needs few allocations: with maps there were 130 for each file.
func TestPolledFiles(t *testing.T) {
	now := time.Date(2026, 11, 26, 4, 0, 0, 0, time.UTC)
	kept := func(f File) string {
		text, err := json.Marshal(f.Keep())
		require.NoError(t, err)
		return string(text)
	}
	source := []queue.PairSource{{Site: "A", Path: "f", URL: "https://a.example.org/f"}}
	plain := File{SourceTexts: []string{"davs://a.example.org/f"}, DestText: "https://b.example.org/f",
		Metadata: json.RawMessage(`{"name":"f","file_metadata":[1,"<é>"]}`)}
	odd := File{SourceTexts: []string{`https://a/x","file_metadata":"y`}, DestText: "https://b/<\"\\é"}
	files := []*queue.JobFile{
		{Item: transfer.Item{ID: 1, State: transfer.Queued, Size: 7}, Pair: queue.Pair{Sources: source, Params: kept(plain)}},
		{Item: transfer.Item{ID: 2, State: transfer.Done, Ended: now, Size: 7}, Pair: queue.Pair{Number: 1, Sources: source, Params: kept(odd)},
			Began: now},
		{Item: transfer.Item{ID: 3, State: transfer.FileFailed, Ended: now, Fault: transfer.DestFull, Reason: "full"},
			Pair: queue.Pair{Number: 2, Sources: source, Params: kept(File{})}},
	}
	j := &queue.JobState{Job: queue.Job{ID: "one", Params: "{}"}}
	fields := append(polled(), "source_surl")
	short, err := AppendFiles(nil, j, files, append(fields, "file_state"))
	require.NoError(t, err)
	long, err := AppendFiles(nil, j, files, append(fields, "transfer_host"))
	require.NoError(t, err)
	var a, b []map[string]any
	if err := json.Unmarshal(short, &a); err != nil {
		t.Fatalf("%v: %s", err, short)
	}
	if err := json.Unmarshal(long, &b); err != nil {
		t.Fatalf("%v: %s", err, long)
	}
	for _, row := range b {
		if row["transfer_host"] != "weir" {
			t.Errorf("%v", row)
		}
		delete(row, "transfer_host")
	}
	if diff := cmp.Diff(b, a); diff != "" || len(a) != 3 || a[1]["dest_surl"] != odd.DestText || a[0]["file_metadata"] == nil {
		t.Errorf("%v\n%s", a, diff)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = AppendFiles(nil, j, files, fields) }) / float64(len(files)); n > 30 {
		t.Errorf("%v allocations for each file", n)
	}
}
