package fts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"weir/transfer"
	"weir/transfer/queue"
)

// The states of jobs and files that weir has.
const (
	Submitted     = "SUBMITTED"
	Active        = "ACTIVE"
	Finished      = "FINISHED"
	FinishedDirty = "FINISHEDDIRTY" // some files of the job arrived, and some failed
	Failed        = "FAILED"
	Canceled      = "CANCELED"
	NotUsed       = "NOT_USED" // of a source of a file that comes from another one
)

// Kept is what the queue keeps of the parameters of a job for its answers.
type Kept struct {
	Dest       string          `json:"dest_se"`   // "": several
	Source     string          `json:"source_se"` // "": several
	VO         string          `json:"vo_name"`
	User       string          `json:"user_dn,omitempty"` // "": who submitted the job in the queue
	Credential string          `json:"cred_id,omitempty"` // "": made of that
	Verify     string          `json:"verify"`
	Retry      int             `json:"retry"`
	Overwrite  string          `json:"overwrite_flag,omitempty"`
	Type       string          `json:"job_type"` // N, Y of reuse, R of several sources
	InQueue    int64           `json:"max_time_in_queue,omitempty"`
	Priority   int             `json:"priority"`
	Metadata   json.RawMessage `json:"job_metadata,omitempty"`
}

// KeptFile is what the queue keeps of the parameters of a file for its answers.
type KeptFile struct {
	Dest     string          `json:"dest"`
	Sources  []string        `json:"sources"`
	Checksum string          `json:"checksum"`
	Strategy string          `json:"selection_strategy"`
	Size     int64           `json:"user_filesize"`
	Metadata json.RawMessage `json:"file_metadata,omitempty"`
}

// Keep returns what the queue keeps of a submission.
func (s *Submission) Keep(vo string) Kept {
	k := Kept{VO: vo, Verify: s.Verify, Retry: s.Retry, Type: "N", InQueue: int64(s.InQueue.Seconds()), Priority: s.Priority,
		Metadata: s.Metadata,
		Dest:     SE(s.Files[0].Dest), Source: SE(s.Files[0].Sources[0])}
	switch {
	case s.Replace:
		k.Overwrite = "Y"
	case s.OnRetry:
		k.Overwrite = "R"
	}
	if s.Reuse {
		k.Type = "Y"
	}
	for i := range s.Files {
		f := &s.Files[i]
		if SE(f.Dest) != k.Dest {
			k.Dest = ""
		}
		for _, u := range f.Sources {
			if SE(u) != k.Source {
				k.Source = ""
			}
		}
		if len(f.Sources) > 1 {
			k.Type = "R"
		}
	}
	return k
}

// Keep returns what the queue keeps of a file.
func (f *File) Keep() KeptFile {
	return KeptFile{Dest: f.DestText, Sources: f.SourceTexts, Checksum: f.Checksum, Strategy: f.Strategy, Size: max(f.Size, 0),
		Metadata: f.Metadata}
}

// SE is the storage element of a URL, in FTS's words: scheme and host.
func SE(u *url.URL) string { return u.Scheme + "://" + u.Hostname() }

// State returns the state of a job.
func State(j *queue.JobState) string {
	var n transfer.Counts
	ended, cancelled := true, false
	for _, p := range j.Parts {
		ended = ended && p.Status.Ended()
		cancelled = cancelled || p.Stop != "" || p.Status == transfer.Cancelled || p.Status == transfer.Expired
		n.Files += p.Count.Files
		n.Leased += p.Count.Leased
		n.Done += p.Count.Done + p.Count.Skipped
		n.Failed += p.Count.Failed
		n.Cancelled += p.Count.Cancelled
	}
	cancelled = cancelled || ended && n.Cancelled > 0
	switch {
	case ended && n.Done == n.Files:
		return Finished
	case cancelled:
		return Canceled
	case !ended && n.Leased+n.Done+n.Failed > 0:
		return Active
	case !ended:
		return Submitted
	case n.Done > 0:
		return FinishedDirty
	}
	return Failed
}

// VOOf returns the virtual organization of a job.
func VOOf(j *queue.JobState) string { return kept(j).VO }

// UserOf returns who submitted a job, as FTS names the user.
func UserOf(j *queue.JobState) string { return cmp.Or(kept(j).User, j.By) }

func kept(j *queue.JobState) (k Kept) {
	_ = json.Unmarshal([]byte(j.Params), &k) // Keep made it
	return k
}

// FileState returns the state of a file.
func FileState(s transfer.State) string {
	switch s {
	case transfer.Leased:
		return Active
	case transfer.Done, transfer.Skipped:
		return Finished
	case transfer.FileFailed:
		return Failed
	case transfer.FileCancelled:
		return Canceled
	}
	return Submitted
}

// Job returns a job with FTS's fields.
func Job(j *queue.JobState) map[string]any {
	var k Kept
	_ = json.Unmarshal([]byte(j.Params), &k) // Keep made it
	m := map[string]any{
		"job_id": j.ID, "job_state": State(j), "job_type": k.Type, "user_dn": cmp.Or(k.User, j.By), "vo_name": k.VO, "submit_time": Time(j.Made),
		"source_se": orNil(k.Source), "dest_se": orNil(k.Dest), "verify_checksum": k.Verify[:min(1, len(k.Verify))], "retry": k.Retry,
		"retry_delay":    0,
		"overwrite_flag": orNil(k.Overwrite), "max_time_in_queue": nil, "priority": k.Priority, "job_metadata": k.Metadata, "reason": nil,
		"job_finished": nil, "cancel_job": false, "submit_host": "weir", "cred_id": cmp.Or(k.Credential, DelegationID(j.By)),
		"bring_online": -1, "archive_timeout": -1,
		"copy_pin_lifetime": -1, "space_token": "", "source_space_token": "", "internal_job_params": nil, "dst_file_report": false,
		"target_qos": nil, "os_project_id": nil,
	}
	if k.InQueue > 0 {
		m["max_time_in_queue"] = j.Made.Unix() + k.InQueue
	}
	ended := len(j.Parts) > 0
	var last = j.Made
	for _, p := range j.Parts {
		ended = ended && p.Status.Ended()
		if p.Ended.After(last) {
			last = p.Ended
		}
		m["priority"] = p.Priority + 3
		m["cancel_job"] = m["cancel_job"] == true || p.Stop == transfer.Cancelled || p.Status == transfer.Cancelled
		if p.Reason != "" {
			m["reason"] = p.Reason
		}
	}
	if ended {
		m["job_finished"] = Time(last)
	}
	switch State(j) {
	case Failed, FinishedDirty:
		m["reason"] = "One or more files failed. Please have a look at the details for more information"
	case Canceled:
		if m["reason"] == nil {
			m["reason"] = "Job canceled by the user"
		}
	}
	return m
}

// Files returns a file with FTS's fields: a row for each of its sources, of which one is used.
func Files(j *queue.JobState, f *queue.JobFile) (rows []map[string]any) {
	var job Kept
	_ = json.Unmarshal([]byte(j.Params), &job) // Keep made it
	k := readKept(f.Params)
	used := max(0, slices.IndexFunc(f.Sources, func(s queue.PairSource) bool { return s.Site == f.Source }))
	for i, s := range f.Sources {
		m := row(j, f, &job, k)
		m["source_surl"], m["source_se"] = k.source(f, i), seOf(s.URL)
		if why, failed := f.Failures[s.Site]; i != used && failed {
			m["file_state"], m["reason"] = Failed, why
		} else if i != used {
			m["file_state"], m["reason"], m["start_time"], m["finish_time"] = NotUsed, nil, nil, nil
		}
		rows = append(rows, m)
	}
	return rows
}

// row returns the fields of a file without its source.
func row(j *queue.JobState, f *queue.JobFile, job *Kept, k *KeptFile) map[string]any {
	m := map[string]any{
		"job_id": j.ID, "vo_name": job.VO, "priority": job.Priority, "activity": f.Share,
		"dest_se": seOf(f.Dest), "checksum": k.Checksum, "user_filesize": k.Size, "filesize": max(f.Item.Size, 0),
		"selection_strategy": k.Strategy, "retry": max(f.Attempts-1, 0), "transfer_host": "weir",
		"hashed_id": 0, "file_state_initial": "",
	}
	for _, name := range polled() {
		m[name] = value(name, f, k)
	}
	for _, name := range []string{"recoverable", "tx_duration", "throughput", "staging_host",
		"archive_start_time", "archive_finish_time", "pid", "internal_file_params", "log_file", "log_debug", "bringonline_token",
		"staging_metadata", "archive_metadata", "scitag", "dest_surl_uuid", "src_token_id", "dst_token_id"} {
		m[name] = nil
	}
	if d := f.Ended.Sub(f.Began).Seconds(); (f.State == transfer.Done || f.State == transfer.Skipped) && d > 0 && !f.Began.IsZero() {
		m["tx_duration"], m["throughput"] = d, float64(f.Item.Size)/(1<<20)/d
	}
	return m
}

// Retry returns the failed attempts at a file with FTS's fields.
func Retry(all []transfer.Attempt) []map[string]any {
	rows := []map[string]any{}
	for _, a := range all {
		if a.Fault != "" && !a.Late {
			rows = append(rows, map[string]any{"attempt": len(rows) + 1, "file_id": a.Item, "datetime": Time(a.End),
				"reason": Reason(&transfer.Item{Fault: a.Fault, Reason: a.Reason}), "transfer_host": "weir", "log_file": nil})
		}
	}
	return rows
}

// Reason returns why a file failed, or waits, with the scope and the number of the error in FTS's words, which clients look for.
func Reason(f *transfer.Item) string {
	if f.Reason == "" || f.State == transfer.Done || f.State == transfer.Skipped {
		return ""
	}
	head := map[transfer.ErrorClass]string{
		transfer.SourceBad:        "SOURCE [2] No such file or directory, or it is corrupt",
		transfer.Occupied:         "DESTINATION OVERWRITE [17] Destination file exists and overwrite is not enabled",
		transfer.DestFull:         "DESTINATION [28] No space left on device",
		transfer.Denied:           "TRANSFER [13] Permission denied",
		transfer.Checksum:         "TRANSFER [5] CHECKSUM MISMATCH",
		transfer.Unreachable:      "TRANSFER [111] Connection refused",
		transfer.Transient:        "TRANSFER [70] Communication error on send",
		transfer.ModeUnsupported:  "TRANSFER [95] Operation not supported",
		transfer.Unverified:       "TRANSFER [95] Checksum not available",
		transfer.LeaseLost:        "TRANSFER [70] Communication error on send",
		transfer.RequestCancelled: "TRANSFER [125] Operation canceled",
	}[f.Fault]
	if head == "" {
		return f.Reason
	}
	if f.Fault == transfer.SourceBad && strings.Contains(f.Reason, "corrupt") {
		head = "SOURCE [5] SOURCE CHECKSUM MISMATCH"
	}
	return head + ": " + f.Reason
}

// DelegationID returns the id of the credentials of a user.
func DelegationID(user string) string {
	return strings.ReplaceAll(uuid5(BaseID, "user "+user), "-", "")[:16]
}

func seOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s://%s", u.Scheme, u.Hostname())
}

// orNil makes null of an absent text.
func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}
