package fts

import (
	"context"
	"crypto/sha1" // UUIDs of version 5 are defined by it
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"weir/loadtest/challenge/inject/service"
)

// The formats of the REST API of FTS3, as in fts3rest/lib/JobBuilder.py and fts3/rest/client.

// A job is a submission.
type job struct {
	Params params `json:"params"`
	Files  []file `json:"files"`
}

// params apply to all files of a job.
type params struct {
	Verify    string         `json:"verify_checksum"`   // both or none
	Overwrite bool           `json:"overwrite"`         // always false
	Retry     int            `json:"retry"`             // -1: no retries; 0 is the default of the service
	InQueue   string         `json:"max_time_in_queue"` // such as 3600s
	Timeout   int            `json:"timeout"`           // seconds of a transfer
	Streams   int            `json:"nostreams,omitempty"`
	Metadata  map[string]any `json:"job_metadata"`
	Generator string         `json:"id_generator"` // deterministic: the id follows from sid
	SID       string         `json:"sid"`
	Unmanaged bool           `json:"unmanaged_tokens,omitempty"` // FTS does not renew the tokens
}

// A file is a copy.
type file struct {
	Sources      []string       `json:"sources"`
	Destinations []string       `json:"destinations"`
	Checksum     string         `json:"checksum"` // ADLER32:hex
	Filesize     int64          `json:"filesize,omitempty"`
	Activity     string         `json:"activity,omitempty"`
	SciTag       int            `json:"scitag,omitempty"`
	Metadata     map[string]any `json:"metadata"`
	Strategy     string         `json:"selection_strategy"`
	SourceTokens []string       `json:"source_tokens,omitempty"`
	DestTokens   []string       `json:"destination_tokens,omitempty"`
}

// identity is the caller, as FTS sees it.
type identity struct {
	DN           string            `json:"user_dn"`
	VOs          []string          `json:"vos"`
	VOIDs        []string          `json:"vos_id"`
	Level        map[string]string `json:"level"`
	Method       string            `json:"method"` // certificate or oauth2
	DelegationID string            `json:"delegation_id"`
}

// fileFields are the fields of files that polls request.
const fileFields = "file_id,file_index,file_state,start_time,finish_time,reason"

// A jobState is a job in the response to a poll.
type jobState struct {
	ID      string      `json:"job_id"`
	State   string      `json:"job_state"`
	Status  string      `json:"http_status"` // such as 404 Not Found
	Message string      `json:"http_message"`
	Files   []fileState `json:"files"`
}

// A fileState is a file of a job.
type fileState struct {
	ID     int64  `json:"file_id"`
	Index  int    `json:"file_index"` // from 0, in the order of the submission
	State  string `json:"file_state"`
	Reason string `json:"reason"`
	Begin  string `json:"start_time"`
	End    string `json:"finish_time"`
}

// jobStates decodes the response to requests about jobs: an object for one job, a list for several.
func jobStates(body []byte) (all []jobState, err error) {
	if trimmed := strings.TrimSpace(string(body[:min(len(body), 64)])); strings.HasPrefix(trimmed, "{") {
		all = make([]jobState, 1)
		err = json.Unmarshal(body, &all[0])
	} else {
		err = json.Unmarshal(body, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("malformed response about jobs: %w", err)
	}
	return all, nil
}

// unknown reports whether the service does not have the job.
func (j *jobState) unknown() bool { return strings.HasPrefix(j.Status, "404") }

// parseTime parses a time of FTS, in UTC without a zone. FTS cuts off parts of seconds: the middle of
// the second is within half a second of the time. It returns the zero time for other texts.
func parseTime(text string) time.Time {
	t, err := time.Parse("2006-01-02T15:04:05", strings.TrimSuffix(strings.Replace(text, " ", "T", 1), "Z"))
	if err != nil || t.Nanosecond() != 0 {
		return t
	}
	return t.Add(time.Second / 2)
}

// whoami returns the caller's identity.
func whoami(ctx context.Context, c *service.Client) (id identity, err error) {
	_, body, err := c.Do(ctx, service.Request{Method: http.MethodGet, Path: "/whoami"})
	if err != nil {
		return id, err
	}
	if err := json.Unmarshal(body, &id); err != nil {
		return id, fmt.Errorf("GET /whoami: malformed response: is inject.url the REST API of FTS? %w", err)
	}
	if len(id.VOs) == 0 || len(id.VOIDs) == 0 || id.DelegationID == "" {
		return id, fmt.Errorf("GET /whoami: FTS assigns no virtual organization to %s: use credentials of one", id.DN)
	}
	return id, nil
}

// jobID returns the id that FTS derives from the id of a virtual organization and a seed: a UUID of
// version 5 (RFC 9562, section 5.5).
func jobID(voID, sid string) (string, error) {
	space, err := hex.DecodeString(strings.ReplaceAll(voID, "-", ""))
	if err != nil || len(space) != 16 {
		return "", fmt.Errorf("vos_id %q of GET /whoami is no UUID", voID)
	}
	h := sha1.New()
	_, _ = h.Write(space)
	_, _ = h.Write([]byte(sid))
	b := [16]byte(h.Sum(nil))
	b[6], b[8] = b[6]&0x0f|0x50, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
}
