package fts

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"weir/transfer"
	"weir/transfer/queue"
)

// The ids are the same as in FTS and Rucio, uuid.uuid5 of Python.
func TestIDs(t *testing.T) {
	if id := VOID("atlas"); id != "a884b056-0359-5c31-af8e-e25b2d364632" {
		t.Errorf("id of atlas: %s", id)
	}
	if id := DeterministicID("atlas", "s1"); id != "09021a88-b927-52fe-a9ee-2129511edd4c" {
		t.Errorf("id of s1: %s", id)
	}
	if a, b := NewID(), NewID(); a == b || len(a) != 36 || a[14] != '4' {
		t.Errorf("%s, %s", a, b)
	}
}

// A submission is read with the parameters that FTS's command sends, and with the parameters of
// Rucio.
func TestRead(t *testing.T) {
	s, err := Read(strings.NewReader(`{"params": {"overwrite": false, "overwrite_on_retry": false, "overwrite_hop": false, "reuse": false,
		"job_metadata": "mine", "gridftp": null, "spacetoken": null, "verify_checksum": "t", "copy_pin_lifetime": -1, "bring_online": -1,
		"archive_timeout": -1, "dst_file_report": false, "timeout": null, "fail_nearline": false, "retry": 3, "priority": 9, "multihop": false,
		"credential": null, "nostreams": null, "s3alternate": false, "ipv4": false, "ipv6": false, "buffer_size": null, "strict_copy": false,
		"disable_cleanup": false, "unmanaged_tokens": false, "max_time_in_queue": "90m"},
		"files": [{"sources": ["davs://a.example.org:8443//x/f"], "destinations": ["https://B.example.org/f"], "checksum": "adler32:1AB",
			"filesize": null, "activity": null, "metadata": {"a": 1}}, {"sources": ["https://a.example.org/g"],
			"destinations": ["https://b.example.org/g"], "checksum": "ADLER32", "filesize": 7.0, "selection_strategy": "orderly"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	f, g := s.Files[0], s.Files[1]
	if s.Verify != "target" || s.Retry != 3 || s.Priority != 5 || s.InQueue != 90*time.Minute || string(s.Metadata) != `{"label":"mine"}` {
		t.Errorf("%+v", s.Params)
	}
	if f.Sources[0].String() != "https://a.example.org:8443//x/f" || f.Dest.Host != "b.example.org" || f.Adler != "000001ab" || f.Size != -1 ||
		f.Activity != "default" || string(f.Metadata) != `{"a": 1}` {
		t.Errorf("%+v", f)
	}
	if g.Adler != "" || g.Size != 7 || g.Strategy != "orderly" {
		t.Errorf("%+v", g)
	}
	if k := s.Keep("vo"); k.Source != "https://a.example.org" || k.Dest != "https://b.example.org" || k.Type != "N" || k.InQueue != 5400 {
		t.Errorf("%+v", k)
	}
}

// Two URLs of one file are equal, regardless of the spelling of their scheme, port and host.
func TestSameDestination(t *testing.T) {
	for _, pair := range [][2]string{
		{"davs://se.example.org/f", "https://SE.example.org.:443/f"}, {"xroot://[::1]/f", "root://[0:0:0:0:0:0:0:1]:1094/f"},
		{"http://127.0.0.1/f", "dav://[::ffff:127.0.0.1]:80/f"},
	} {
		_, err := Read(strings.NewReader(`{"files":[{"sources":["https://a/f"],"destinations":["` + pair[0] + `"]},
			{"sources":["https://a/g"],"destinations":["` + pair[1] + `"]}]}`))
		if e := new(Error); !errors.As(err, &e) || e.Status != 409 {
			t.Errorf("%q: %v", pair, err)
		}
	}
}

// Endpoints that cannot exist, names that lost a character and values of another type are refused, without words of Go.
func TestReadRefuses(t *testing.T) {
	file := func(dest string) string {
		return `{"files":[{"sources":["https://a/f"],"destinations":["` + dest + `"]}]}`
	}
	mark := func(tag, archive string) string {
		return `{"files":[{"sources":["https://a/f"],"destinations":["https://b/f"],"scitag":` + tag + `,"archive_metadata":` + archive + `}]}`
	}
	for text, want := range map[string]string{
		file("https://localhost:99999/x"): "port", file("https://b:0/x"): "port", file("https://0x7f.1/x"): "host",
		file("https://127.1/x"): "host", file("https://2130706433/x"): "host", file("https://1.2.3.999/x"): "host",
		file(`https://b/store/sur\ud800x`): "cannot be read", `[]`: "the request cannot be a JSON array",
		mark("1", "{}"): "SciTag", mark("64", "{}"): "SciTag", mark("65536", "{}"): "SciTag", mark(`"129"`, "{}"): "SciTag",
		mark("129.5", "{}"): "SciTag", mark("129", `["a"]`): "archive_metadata", mark("129", `"a"`): "archive_metadata",
		`{"files":7}`: "files cannot be a JSON number", `{"files":[{"sources":7}]}`: "sources cannot be a JSON number",
	} {
		_, err := Read(strings.NewReader(text))
		if e := new(Error); !errors.As(err, &e) || e.Status != 400 || !strings.Contains(e.Message, want) || strings.Contains(e.Message, "Go ") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for _, dest := range []string{"https://b:65535/x", "https://127.0.0.1/x", "https://[::1]:8443/x", "https://3com.example.org/x",
		"https://b.example.org./x"} {
		if _, err := Read(strings.NewReader(file(dest))); err != nil {
			t.Errorf("%s: %v", dest, err)
		}
	}
}

// Labels and metadata of files, and of a job for files without any, are kept apart from other metadata.
func TestMarksAreKept(t *testing.T) {
	s, err := Read(strings.NewReader(`{"params":{"scitag":65,"archive_metadata":{"b":1}},"files":[
		{"sources":["https://a/f"],"destinations":["https://b/f"],"scitag":65535,"archive_metadata":{"a":",\"file_metadata\":"},"metadata":{"m":1}},
		{"sources":["https://a/g"],"destinations":["https://b/g"],"scitag":null}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ tag, archive string }{{"65535", `{"a":",\"file_metadata\":"}`}, {"65", `{"b":1}`}} {
		text, err := json.Marshal(s.Files[i].Keep())
		if err != nil {
			t.Fatal(err)
		}
		tag, archive := Marks(string(text))
		if got, _ := base64.StdEncoding.DecodeString(archive); tag != want.tag || string(got) != want.archive {
			t.Errorf("%q, %s", tag, got)
		}
	}
	if tag, archive := Marks(`{"file_metadata":{"scitag":99}}`); tag != "" || archive != "" {
		t.Errorf("%q, %q", tag, archive)
	}
}

// The state of a job follows from the counts of its requests.
func TestState(t *testing.T) {
	part := func(s transfer.Status, c transfer.Counts) queue.JobRequest {
		return queue.JobRequest{Request: transfer.Request{Status: s, Count: c}}
	}
	waits := part(transfer.Running, transfer.Counts{Files: 2, Queued: 2})
	moves := part(transfer.Running, transfer.Counts{Files: 2, Queued: 1, Leased: 1})
	done := part(transfer.Completed, transfer.Counts{Files: 2, Done: 1, Skipped: 1})
	partial := part(transfer.Partial, transfer.Counts{Files: 2, Done: 1, Failed: 1})
	failed := part(transfer.Failed, transfer.Counts{Files: 2, Failed: 2})
	expired := part(transfer.Expired, transfer.Counts{Files: 2, Cancelled: 2})
	stopped := moves
	stopped.Stop = transfer.Cancelled
	for _, c := range []struct {
		parts []queue.JobRequest
		want  string
	}{
		{[]queue.JobRequest{waits}, Submitted}, {[]queue.JobRequest{moves}, Active}, {[]queue.JobRequest{done}, Finished},
		{[]queue.JobRequest{partial}, FinishedDirty}, {[]queue.JobRequest{failed}, Failed}, {[]queue.JobRequest{expired}, Canceled},
		{[]queue.JobRequest{stopped}, Canceled}, {[]queue.JobRequest{done, waits}, Active}, {[]queue.JobRequest{done, failed}, FinishedDirty},
		{[]queue.JobRequest{done, done}, Finished},
	} {
		if got := State(&queue.JobState{Parts: c.parts}); got != c.want {
			t.Errorf("%s instead of %s: %+v", got, c.want, c.parts)
		}
	}
}

// Any input is accepted or refused with a status of its own, and an accepted submission never names
// another host than its URL.
func FuzzRead(f *testing.F) {
	f.Add(`{"files":[{"sources":["https://a/f"],"destinations":["https://b/f"],"checksum":"ADLER32:1"}],"params":{"retry":1}}`)
	f.Add(`{"files":[{"sources":["davs://a:1//f","https://c/f"],"destinations":["dav://[::1]/f"],"source_tokens":["x"]}]}`)
	f.Add(`{"params":{"max_time_in_queue":"9d","priority":"3","overwrite":"Y","verify_checksum":""},"files":[{}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Read(strings.NewReader(text))
		var e *Error
		switch {
		case err != nil && (!errors.As(err, &e) || e.Status < 400 || e.Status > 499 || e.Message == ""):
			t.Errorf("%#v", err)
		case err == nil:
			for _, one := range s.Files {
				if one.Dest.Host == "" || one.Dest.User != nil || len(one.Sources) == 0 || one.Size == 0 {
					t.Errorf("%+v", one)
				}
			}
			s.Keep("vo")
		}
	})
}
