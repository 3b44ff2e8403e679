package tpc

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"weir/internal/require"
)

const marker = "Perf Marker\nTimestamp: 1537788010\nStripe Index: 0\nStripe Bytes Transferred: 238745\nTotal Stripe Count: 1\n" +
	"RemoteConnections: tcp:129.93.3.4:1234,tcp:[2600:900:6:1301:268a:7ff:fef6:a590]:2345\nEnd\n"

func TestFollow(t *testing.T) {
	stripe := func(index, moved string) string {
		return "Perf Marker\n    Stripe Index: " + index + "\n\tStripe Bytes Transferred: " + moved + "\nEnd\n"
	}
	for name, tt := range map[string]struct {
		body  string
		kind  Kind // "": success
		moved []int64
		says  string
	}{
		"XRootD's":         {body: marker + "success: Created\n", moved: []int64{238745}},
		"no end of line":   {body: marker + "success: Created", moved: []int64{238745}},
		"carriage returns": {body: strings.ReplaceAll(marker, "\n", "\r\n") + "Success: Created\r\n", moved: []int64{238745}},
		"blanks before":    {body: "\n\n   SUCCESS\n"},
		"two stripes":      {body: stripe("0", "10") + stripe("1", "5") + stripe("0", "20") + "success", moved: []int64{10, 15, 25}},
		"failure": {body: marker + "failure: Remote side failed with status code 404\n", kind: Missing, moved: []int64{238745},
			says: "status code 404"},
		"failure without a reason": {body: "failure:\n", kind: Failed, says: "no reason"},
		"failed":                   {body: "failed\n", kind: Failed},
		"aborted":                  {body: "aborted: by pool\n", kind: Failed, says: "by pool"},
		"checksums differ":         {body: "failure: Checksum mismatch (adler32)\n", kind: Mismatch},
		"no space":                 {body: "failure: No space left on device\n", kind: Full},
		"nothing at all":           {body: "", kind: Broken, says: "without telling"},
		"markers and no verdict":   {body: marker + marker, kind: Broken, moved: []int64{238745, 238745}, says: "without telling"},
		"half a verdict":           {body: marker + "succ", kind: Broken, moved: []int64{238745}},
		"a verdict in a value":     {body: "Info: success: Created\n", kind: Broken},
		"a verdict as a word":      {body: "successful: no\n", kind: Broken},
		"numbers that are none":    {body: stripe("x", "1") + stripe("0", "-5") + stripe("0", "1e9") + stripe("99999", "4") + "success\n"},
		"too many bytes": {body: stripe("0", "9223372036854775807") + stripe("1", "9223372036854775807") + "success\n",
			moved: []int64{1<<63 - 1, 0}},
		"markers without ends": {body: "Perf Marker\nStripe Bytes Transferred: 1\nPerf Marker\nEnd\nsuccess"},
		"a page":               {body: "<html><body>It works!</body></html>", kind: Broken},
		"a line without end":   {body: strings.Repeat("x", 1<<20) + "\nsuccess: ok\n"},
		"zeros":                {body: strings.Repeat("\x00", 100), kind: Broken},
		"control characters":   {body: "failure: a\x1b[31mb\x00\n", kind: Failed, says: "a [31mb"},
	} {
		for _, r := range []io.Reader{strings.NewReader(tt.body), iotest.OneByteReader(strings.NewReader(tt.body))} {
			var moved []int64
			err := Follow(r, func(n int64) { moved = append(moved, n) })
			if KindOf(err) != tt.kind || (err == nil) != (tt.kind == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s: error %v", name, err)
			}
			if !slices.Equal(moved, tt.moved) {
				t.Errorf("%s: moved %d, not %d", name, moved, tt.moved)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\n\x1b\x00") {
				t.Errorf("%s: %q has control characters", name, err)
			}
		}
	}
}

func TestFailuresHaveTheStatusOfTheOtherSide(t *testing.T) {
	for text, want := range map[string]int{
		"Remote side failed with status code 404":    404,
		"rejected GET: 403 Forbidden":                403,
		"HTTP/1.1 507 : Insufficient Storage":        507,
		"transferred 404123 bytes of 5031 expected":  0,
		"Transfer failed because of error 10.0.4.15": 0,
		"HEAD: a.example:443 answers 404 Not Found":  404,
		"HEAD: 10.0.0.1:503: connection refused":     0,
		"status 403: no":                             403,
		"404":                                        404,
		"it is 404.":                                 404,
	} {
		var e *Error
		if err := Follow(strings.NewReader("failure: "+text+"\n"), func(int64) {}); !errors.As(err, &e) || e.Remote != want || !e.Begun {
			t.Errorf("%q: %+v", text, e)
		}
	}
}

// Texts without a status have the kind of their words. A missing folder of the new file is not a
// missing source.
func TestFailuresHaveTheKindOfTheirWords(t *testing.T) {
	for text, want := range map[string]Kind{
		"Unable to open /data/none; no such file or directory, local=/data/none, remote=http://a/b": Missing,
		"Unable to create /data/d/f; no such file or directory":                                     Failed,
		"Unable to create /data/f; file exists, local=/data/f":                                      Exists,
		"Transferred a partial file":                                                                Failed,
	} {
		if err := Follow(strings.NewReader("failure: "+text+"\n"), func(int64) {}); KindOf(err) != want {
			t.Errorf("%q: %v", text, KindOf(err))
		}
	}
}

// Written results can be read back, with any reason.
func TestWrittenAndRead(t *testing.T) {
	var b bytes.Buffer
	m := Marker{At: time.Unix(1537788010, 0), Moved: 7, Remote: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}}
	require.NoError(t, errors.Join(m.Write(&b), Failure(&b, "two\nlines\r\nsuccess: no")))
	var moved int64
	err := Follow(&b, func(n int64) { moved = n })
	if KindOf(err) != Failed || moved != 7 || !strings.Contains(err.Error(), "two lines success: no") {
		t.Errorf("%d, %v", moved, err)
	}
	_ = Success(&b)
	if err := Follow(&b, nil); err != nil {
		t.Error(err)
	}
}

func FuzzFollow(f *testing.F) {
	f.Add([]byte(marker + "success: Created\n"))
	f.Add([]byte("Perf Marker\nStripe Index: 3\nStripe Bytes Transferred: 12\nEnd\nfailure: 404"))
	f.Fuzz(func(t *testing.T, body []byte) {
		err := Follow(bytes.NewReader(body), func(n int64) {
			if n < 0 {
				t.Errorf("%d bytes", n)
			}
		})
		if err == nil && !bytes.Contains(bytes.ToLower(body), []byte("success")) {
			t.Errorf("%q succeeded", body)
		}
		var e *Error
		if err != nil && (!errors.As(err, &e) || !e.Begun || len(e.Text) > 1000 || strings.ContainsAny(e.Text, "\r\n")) {
			t.Errorf("error %q", err)
		}
	})
}
