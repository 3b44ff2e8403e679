package fts

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"weir/internal/digest"
	"weir/transfer"
	"weir/transfer/queue"
)

// multihop is the type of jobs with several hops.
const multihop = "H"

// The states of jobs and files that weir has.
const (
	Submitted     = "SUBMITTED"
	Active        = "ACTIVE"
	Finished      = "FINISHED"
	FinishedDirty = "FINISHEDDIRTY" // some files of the job arrived, and some failed
	Failed        = "FAILED"
	Canceled      = "CANCELED"
	Staging       = "STAGING"   // the source is being brought online
	Archiving     = "ARCHIVING" // the file has arrived, and is being written to tape
	Deleting      = "DELETE"    // of a deletion job, or of a file that will be removed
	NotUsed       = "NOT_USED"  // of a source of a file that comes from another source
)

// Kept are the parameters of a job that the queue stores for responses.
type Kept struct {
	Dest       string          `json:"dest_se"`   // "": several
	Source     string          `json:"source_se"` // "": several
	VO         string          `json:"vo_name"`
	User       string          `json:"user_dn,omitempty"` // "": the submitter of the job in the queue
	Credential string          `json:"cred_id,omitempty"` // "": derived from the submitter
	Verify     string          `json:"verify"`
	Retry      int             `json:"retry"`
	Overwrite  string          `json:"overwrite_flag,omitempty"`
	Type       string          `json:"job_type"` // N, Y with reuse, R with several sources
	InQueue    int64           `json:"max_time_in_queue,omitempty"`
	Priority   int             `json:"priority"`
	Metadata   json.RawMessage `json:"job_metadata,omitempty"`
	Delay      int64           `json:"retry_delay,omitempty"`       // seconds
	Stage      int64           `json:"bring_online,omitempty"`      // likewise
	Pin        int64           `json:"copy_pin_lifetime,omitempty"` // likewise
	Archive    int64           `json:"archive_timeout,omitempty"`   // likewise
	Report     bool            `json:"dst_file_report,omitempty"`
}

// KeptFile are the parameters of a file that the queue stores for responses.
type KeptFile struct {
	Dest     string          `json:"dest"`
	Sources  []string        `json:"sources"`
	Checksum string          `json:"checksum"`
	Strategy string          `json:"selection_strategy"`
	Size     int64           `json:"user_filesize"`
	Report   bool            `json:"dst_file_report,omitempty"`
	SciTag   int             `json:"scitag,omitempty"`
	Archive  []byte          `json:"archive_metadata,omitempty"` // JSON
	Metadata json.RawMessage `json:"file_metadata,omitempty"`    // the last field, see readKept
}

// Marks returns the label of the flows of a file and its archive_metadata in Base64, from the
// stored parameters. "" means not set.
func Marks(params string) (sciTag, archive string) {
	k := readKept(params)
	if k.SciTag > 0 {
		sciTag = strconv.Itoa(k.SciTag)
	}
	return sciTag, base64.StdEncoding.EncodeToString(k.Archive)
}

// Keep returns the parameters of a submission that the queue stores.
func (s *Submission) Keep(vo string) Kept {
	k := Kept{VO: vo, Verify: s.Verify, Retry: s.Retry, Type: "N", InQueue: int64(s.InQueue.Seconds()), Priority: s.Priority,
		Metadata: s.Metadata, Delay: int64(s.Delay.Seconds()),
		Stage: int64(s.Stage.Seconds()), Pin: int64(s.Pin.Seconds()), Archive: int64(s.Archive.Seconds()),
		Report: s.Report}
	if len(s.Files) > 0 {
		k.Dest, k.Source = SE(s.Files[0].Dest), SE(s.Files[0].Sources[0])
	} else {
		k.Source = SE(s.Deletes[0].URL)
	}
	switch {
	case s.Replace:
		k.Overwrite = "Y"
	case s.OnRetry:
		k.Overwrite = "R"
	case s.OnHop:
		k.Overwrite = "M"
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
	if s.Hops {
		k.Type = multihop
		k.Dest, k.Source = SE(s.Files[len(s.Files)-1].Dest), SE(s.Files[0].Sources[0])
	}
	for i := range s.Deletes {
		if SE(s.Deletes[i].URL) != k.Source {
			k.Source = ""
		}
	}
	return k
}

// Keep returns the parameters of a file to be removed that the queue stores.
func (d *Delete) Keep() KeptFile {
	return KeptFile{Sources: []string{d.Text}, Metadata: d.Metadata}
}

// Keep returns the parameters of a file that the queue stores.
func (f *File) Keep() KeptFile {
	return KeptFile{Report: f.Report, Dest: f.DestText, Sources: f.SourceTexts, Checksum: f.Checksum, Strategy: f.Strategy,
		Size: max(f.Size, 0), SciTag: f.SciTag, Archive: f.Archiving, Metadata: f.Metadata}
}

// State returns the state of a job.
func State(j *queue.JobState) string {
	var n transfer.Counts
	var staging, archiving int64
	ended, cancelled, deletes := true, false, true
	for _, p := range j.Parts {
		deletes = deletes && p.Terms.Delete
	}
	for _, p := range j.Parts {
		if p.Terms.Delete && !deletes { // of an intermediate copy
			ended = ended && p.Status.Ended()
			continue
		}
		ended = ended && p.Status.Ended()
		cancelled = cancelled || p.Stop != "" || p.Status == transfer.Cancelled || p.Status == transfer.Expired
		n.Files += p.Count.Files
		n.Leased += p.Count.Leased
		n.Done += p.Count.Done + p.Count.Skipped
		n.Failed += p.Count.Failed
		n.Cancelled += p.Count.Cancelled
		staging += p.Staging
		archiving += p.Archive
	}
	cancelled = cancelled || ended && n.Cancelled > 0
	switch {
	case ended && n.Done == n.Files:
		return Finished
	case ended && n.Failed > 0 && kept(j).Type == multihop:
		return Failed
	case cancelled:
		return Canceled
	case !ended && deletes:
		return Deleting
	case staging > 0 && staging+n.Done+n.Failed+n.Cancelled == n.Files:
		return Staging
	case archiving > 0 && archiving+n.Done+n.Failed+n.Cancelled == n.Files:
		return Archiving
	case !ended && n.Leased+archiving+n.Done+n.Failed > 0:
		return Active
	case !ended:
		return Submitted
	case n.Done > 0:
		return FinishedDirty
	}
	return Failed
}

// Open reports whether a state of a job or file is not final.
func Open(state string) bool {
	switch state {
	case Submitted, Active, Deleting, Staging, Archiving:
		return true
	}
	return false
}

// Ended returns the states of jobs that have ended.
func Ended() []string { return []string{Finished, FinishedDirty, Failed, Canceled} }

// Keys returns the properties by which the queue finds a job.
func Keys(j *queue.JobState) queue.JobKeys {
	k := kept(j)
	return queue.JobKeys{State: State(j), User: UserOf(j), VO: k.VO, Credential: cmp.Or(k.Credential, DelegationID(j.By)), Source: k.Source,
		Dest: k.Dest}
}

// VOOf returns the virtual organization of a job.
func VOOf(j *queue.JobState) string { return kept(j).VO }

// Multihop reports whether a job has several hops.
func Multihop(j *queue.JobState) bool { return kept(j).Type == multihop }

// UserOf returns the submitter of a job, in the notation of FTS.
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

// StateOf returns the state of a file of a job.
func StateOf(f *queue.JobFile) string {
	if f.Held || f.Fault == transfer.HopFailed {
		return NotUsed
	}
	switch f.Waits {
	case queue.Stage:
		return Staging
	case queue.Archive:
		return Archiving
	}
	return FileState(f.State)
}

// orMinus returns a number of seconds, or -1 for 0, which FTS uses for an absent value.
func orMinus(n int64) int64 {
	if n == 0 {
		return -1
	}
	return n
}

// Job returns a job with FTS's fields.
func Job(j *queue.JobState) map[string]any {
	var k Kept
	_ = json.Unmarshal([]byte(j.Params), &k) // Keep made it
	m := map[string]any{
		"job_id": j.ID, "job_state": State(j), "job_type": k.Type, "user_dn": cmp.Or(k.User, j.By), "vo_name": k.VO, "submit_time": Time(j.Made),
		"source_se": orNil(k.Source), "dest_se": orNil(k.Dest), "verify_checksum": k.Verify[:min(1, len(k.Verify))], "retry": k.Retry,
		"retry_delay":    k.Delay,
		"overwrite_flag": orNil(k.Overwrite), "max_time_in_queue": nil, "priority": k.Priority, "job_metadata": k.Metadata, "reason": nil,
		"job_finished": nil, "cancel_job": false, "submit_host": "weir", "cred_id": cmp.Or(k.Credential, DelegationID(j.By)),
		"bring_online": orMinus(k.Stage), "archive_timeout": orMinus(k.Archive),
		"copy_pin_lifetime": orMinus(k.Pin), "space_token": "", "source_space_token": "", "internal_job_params": nil, "dst_file_report": k.Report,
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
		"job_id": j.ID, "vo_name": job.VO, "priority": f.Priority + 3, "activity": f.Share,
		"dest_se": seOf(f.Dest), "checksum": k.Checksum, "user_filesize": k.Size, "filesize": max(f.Item.Size, 0),
		"selection_strategy": k.Strategy, "retry": max(f.Attempts-1, 0), "transfer_host": "weir",
		"hashed_id": 0, "file_state_initial": "",
	}
	for _, name := range polled() {
		m[name] = value(name, f, k)
	}
	for _, name := range []string{"recoverable", "tx_duration", "throughput", "staging_host",
		"archive_start_time", "archive_finish_time", "pid", "internal_file_params", "log_file", "log_debug", "bringonline_token",
		"staging_metadata", "dest_surl_uuid", "src_token_id", "dst_token_id"} {
		m[name] = nil
	}
	m["scitag"], m["archive_metadata"] = nil, nil
	if k.SciTag > 0 {
		m["scitag"] = k.SciTag
	}
	if len(k.Archive) > 0 {
		m["archive_metadata"] = json.RawMessage(k.Archive)
	}
	for _, t := range f.Tape {
		if t.Kind == queue.Archive {
			m["archive_start_time"], m["archive_finish_time"] = Time(t.Began), Time(t.Ended)
		} else {
			m["staging_host"] = "weir"
		}
	}
	if d := f.Ended.Sub(f.Began).Seconds(); (f.State == transfer.Done || f.State == transfer.Skipped) && d > 0 && !f.Began.IsZero() {
		m["tx_duration"], m["throughput"] = d, float64(f.Item.Size)/(1<<20)/d
	}
	return m
}

// Deletion returns a file of a deletion job with FTS's fields.
func Deletion(j *queue.JobState, f *queue.JobFile) map[string]any {
	job := kept(j)
	var k KeptFile
	_ = json.Unmarshal([]byte(f.Params), &k) // Keep made it
	state := FileState(f.State)
	switch state {
	case Submitted:
		state = Deleting
	case Active:
		state = "STARTED"
	}
	m := map[string]any{"job_id": j.ID, "file_id": f.ID, "file_state": state, "source_surl": k.Sources[0], "source_se": seOf(f.Dest),
		"reason": orNil(Reason(&f.Item)), "start_time": Time(f.Began), "finish_time": Time(f.Ended), "retry": max(f.Attempts-1, 0),
		"file_metadata": k.Metadata, "vo_name": job.VO, "activity": f.Share, "dmhost": "weir", "hashed_id": 0}
	for _, name := range []string{"dest_surl", "dest_se", "checksum", "job_finished", "tx_duration", "user_filesize", "dm_token",
		"retry_timestamp", "wait_timestamp", "wait_timeout"} {
		m[name] = nil
	}
	if d := f.Ended.Sub(f.Began).Seconds(); state == Finished && d > 0 && !f.Began.IsZero() {
		m["tx_duration"] = d
	}
	return m
}

// metadataOf returns the metadata of a file. With dst_file_report it adds the existing file at the
// destination, in the format that Rucio reads.
func metadataOf(f *queue.JobFile, k *KeptFile) json.RawMessage {
	if !k.Report || f.Found == nil {
		return k.Metadata
	}
	m := map[string]any{}
	_ = json.Unmarshal(k.Metadata, &m) // an object, or null
	there := map[string]any{"file_size": f.Found.Size}
	if f.Found.Adler != "" {
		kind, digits := digest.Split(f.Found.Adler)
		there["checksum_type"], there["checksum_value"] = strings.ToUpper(kind.Name), digits
	}
	m["dst_file"] = there
	text, err := json.Marshal(m)
	if err != nil {
		return k.Metadata
	}
	return text
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

// Reason returns the reason why a file failed, or waits, with the scope and the number of the error
// in FTS's notation, which clients search for.
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

// orNil returns nil for an empty text, which becomes null in JSON.
func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}
