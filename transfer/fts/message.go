package fts

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"weir/transfer"
	"weir/transfer/queue"
)

// A Kind is a kind of FTS3's messages.
type Kind string

// The kinds.
const (
	StartMessage    Kind = "start"    // an attempt at a file began
	CompleteMessage Kind = "complete" // an attempt ended, or a file that had no attempt
	StateMessage    Kind = "state"    // the state of a file changed
)

// A Message is one of FTS3's messages about a file of a job.
type Message struct {
	Kind Kind
	VO   string
	Body []byte // JSON
}

// MessageOptions configure Messages.
type MessageOptions struct {
	Endpoint string // name of the service
	Users    bool   // messages name users
}

// attemptBody has the fields that messages about attempts have in common.
type attemptBody struct {
	Job          string          `json:"job_id"`
	File         int64           `json:"file_id"`
	Endpoint     string          `json:"endpnt"`
	SourceSRM    string          `json:"src_srm_v"`
	DestSRM      string          `json:"dest_srm_v"`
	VO           string          `json:"vo"`
	Source       string          `json:"src_url"`
	Dest         string          `json:"dst_url"`
	SourceHost   string          `json:"src_hostname"`
	DestHost     string          `json:"dst_hostname"`
	SourceSite   string          `json:"src_site_name"`
	DestSite     string          `json:"dst_site_name"`
	Channel      string          `json:"t_channel"`
	SourceToken  string          `json:"srm_space_token_src"`
	DestToken    string          `json:"srm_space_token_dst"`
	User         string          `json:"user_dn"`
	Archiving    bool            `json:"is_archiving"`
	FileMetadata json.RawMessage `json:"file_metadata"`
	JobMetadata  json.RawMessage `json:"job_metadata"`
}

// startBody has the fields of a message about an attempt that began.
type startBody struct {
	attemptBody
	ID   string `json:"transfer_id"`
	Time int64  `json:"timestamp"` // milliseconds since 1970, as all times
}

// completeBody has the fields of a message about an attempt that ended, or about a file that had no
// attempt. Values that weir does not measure are 0.
type completeBody struct {
	attemptBody

	ID            string `json:"tr_id"`
	SourceSE      string `json:"src_se"`
	DestSE        string `json:"dst_se"`
	Protocol      string `json:"protocol"`
	Began         int64  `json:"timestamp_tr_st"`
	Ended         int64  `json:"timestamp_tr_comp"`
	SourceSumFrom int64  `json:"timestamp_chk_src_st"`
	SourceSumTo   int64  `json:"timestamp_chk_src_ended"`
	DestSumFrom   int64  `json:"timestamp_checksum_dest_st"`
	DestSumTo     int64  `json:"timestamp_checksum_dest_ended"`
	Timeout       int64  `json:"t_timeout"` // seconds
	SumTimeout    int64  `json:"chk_timeout"`

	ErrorCode     int    `json:"t_error_code"`
	ErrorScope    string `json:"tr_error_scope"`
	ErrorPhase    string `json:"t_failure_phase"`
	ErrorCategory string `json:"tr_error_category"`
	Error         string `json:"t__error_message"`
	Outcome       string `json:"t_final_transfer_state"` // Ok, Error or Abort
	OutcomeFlag   int    `json:"t_final_transfer_state_flag"`
	Recoverable   bool   `json:"is_recoverable"`

	Moved          int64   `json:"tr_bt_transfered"`
	Streams        int     `json:"nstreams"`
	Buffer         int64   `json:"buf_size"`
	TCPBuffer      int64   `json:"tcp_buf_size"`
	Block          int64   `json:"block_size"`
	Scitag         int     `json:"scitag"`
	Size           int64   `json:"f_size"`
	FileSize       int64   `json:"file_size"`
	PrepareFrom    int64   `json:"time_srm_prep_st"`
	PrepareTo      int64   `json:"time_srm_prep_end"`
	FinalizeFrom   int64   `json:"time_srm_fin_st"`
	FinalizeTo     int64   `json:"time_srm_fin_end"`
	Start          int64   `json:"tr_timestamp_start"`
	Complete       int64   `json:"tr_timestamp_complete"`
	TransferTime   int64   `json:"transfer_time"` // milliseconds
	OperationTime  int64   `json:"operation_time"`
	Throughput     float64 `json:"throughput"` // bytes per second; -1: not known
	PrepareTime    int64   `json:"srm_preparation_time"`
	FinalizeTime   int64   `json:"srm_finalization_time"`
	OverheadTime   int64   `json:"srm_overhead_time"`
	OverheadShare  float64 `json:"srm_overhead_percentage"`
	SourceSumTime  int64   `json:"timestamp_checksum_src_diff"`
	DestSumTime    int64   `json:"timestamp_checksum_dst_diff"`
	ChannelType    string  `json:"channel_type"`
	Activity       string  `json:"activity"`
	Retry          int     `json:"retry"`
	RetryMax       int     `json:"retry_max"`
	Replicas       bool    `json:"job_m_replica"`
	Multihop       bool    `json:"job_multihop"`
	LastHop        bool    `json:"transfer_lasthop"`
	JobState       string  `json:"job_state"`
	IP             string  `json:"ipver"`
	Eviction       int     `json:"eviction_code"`
	Cleanup        int     `json:"cleanup_code"`
	FinalDest      string  `json:"final_destination"`
	Type           string  `json:"transfer_type"`
	Auth           string  `json:"auth_method"`
	OnDisk         bool    `json:"overwrite_on_disk_flag"`
	OnDiskCode     int     `json:"overwrite_on_disk_deletion_code"`
	SourceProtocol string  `json:"src_protocol"`
	DestProtocol   string  `json:"dst_protocol"`
	SourceWire     string  `json:"src_transfer_protocol"`
	DestWire       string  `json:"dst_transfer_protocol"`
	Translation    bool    `json:"protocol_translation"`
}

// stateBody has the fields of a message about the state of a file.
type stateBody struct {
	User         string          `json:"user_dn"`
	Source       string          `json:"src_url"`
	Dest         string          `json:"dst_url"`
	VO           string          `json:"vo_name"`
	SourceSE     string          `json:"source_se"`
	DestSE       string          `json:"dest_se"`
	Job          string          `json:"job_id"`
	File         int64           `json:"file_id"`
	JobState     string          `json:"job_state"`
	FileState    string          `json:"file_state"`
	Retry        int             `json:"retry_counter"`
	RetryMax     int             `json:"retry_max"`
	Size         int64           `json:"user_filesize"`
	Time         int64           `json:"timestamp"`
	Submitted    int64           `json:"submit_time"`
	StagingFrom  int64           `json:"staging_start"`
	StagingTo    int64           `json:"staging_finished"`
	Staging      bool            `json:"staging"`
	ArchiveFrom  int64           `json:"archiving_start"`
	ArchiveTo    int64           `json:"archiving_finished"`
	Archiving    bool            `json:"archiving"`
	Reason       string          `json:"reason"`
	Endpoint     string          `json:"endpnt"`
	JobMetadata  json.RawMessage `json:"job_metadata"`
	FileMetadata json.RawMessage `json:"file_metadata"`
}

// A changed is a change of a file with the values that its messages have in common.
type changed struct {
	*queue.FileChange
	MessageOptions
	job          Kept
	file         *KeptFile
	user         string
	source       string
	sourceURL    url.URL
	destURL      url.URL
	fileMetadata json.RawMessage
}

// Messages returns FTS3's messages about a change of a file: a message about its state and, if an
// attempt or the file began or ended, a message about this. A file whose job was forgotten has no
// messages.
//
// A completion with the job state ACTIVE means that the file is tried again, and Rucio waits. In a
// job with several hops Rucio would not wait: there such attempts have no message.
func Messages(c *queue.FileChange, o MessageOptions) (all []Message, err error) {
	if c.Job == nil || len(c.File.Sources) == 0 {
		return nil, nil
	}
	m := &changed{FileChange: c, MessageOptions: o, job: kept(c.Job), file: readKept(c.File.Params)}
	if o.Users {
		m.user = UserOf(c.Job)
	}
	m.fileMetadata = metadataOf(c.File, m.file)
	used := max(0, slices.IndexFunc(c.File.Sources, func(s queue.PairSource) bool { return s.Site == c.Source }))
	m.source = m.file.source(c.File, used)
	m.sourceURL, m.destURL = parsed(m.source), parsed(m.file.Dest)
	bodies := map[Kind]any{StateMessage: m.state()}
	final := c.File.State.Final()
	switch {
	case c.Began:
		bodies[StartMessage] = m.start()
	case c.Ended != nil && c.Ended.Fault != "" && !final && m.multihop():
	case c.Ended != nil, final && StateOf(c.File) != NotUsed:
		bodies[CompleteMessage] = m.complete()
	}
	for _, kind := range []Kind{StateMessage, StartMessage, CompleteMessage} {
		if bodies[kind] == nil {
			continue
		}
		text, err := json.Marshal(bodies[kind])
		if err != nil {
			return nil, err
		}
		all = append(all, Message{kind, m.job.VO, text})
	}
	return all, nil
}

func (c *changed) multihop() bool { return c.job.Type == multihop }

// id returns the id of an attempt. Rucio extracts the id of the job from its end.
func (c *changed) id(began time.Time) string {
	return began.UTC().Format("2006-01-02-1504") + "__" + c.sourceURL.Hostname() + "__" + c.destURL.Hostname() + "__" +
		strconv.FormatInt(c.File.ID, 10) + "__" + c.Job.ID
}

// attempt returns the fields that messages about attempts have in common.
func (c *changed) attempt(archiving bool) attemptBody {
	from, to := c.sourceURL.Hostname(), c.destURL.Hostname()
	return attemptBody{Job: c.Job.ID, File: c.File.ID, Endpoint: c.Endpoint, VO: c.job.VO, Source: c.source, Dest: c.file.Dest,
		SourceHost: from, DestHost: to, Channel: from + "__" + to, User: c.user, Archiving: archiving, FileMetadata: c.fileMetadata,
		JobMetadata: c.job.Metadata}
}

func (c *changed) start() startBody {
	return startBody{attemptBody: c.attempt(c.File.Terms.Archive > 0), ID: c.id(c.At), Time: c.At.UnixMilli()}
}

func (c *changed) complete() completeBody {
	size := max(c.File.Item.Size, 0)
	b := completeBody{attemptBody: c.attempt(c.File.Waits == queue.Archive), SourceSE: seOf(c.source), DestSE: seOf(c.file.Dest),
		Protocol: c.destURL.Scheme, Timeout: int64(c.File.Timeout.Seconds()), Streams: c.File.Streams, Size: size, FileSize: size,
		ChannelType: "urlcopy", Activity: c.File.Share, Replicas: len(c.File.Sources) > 1, Multihop: c.multihop(), LastHop: c.lastHop(),
		IP: "unknown", Eviction: -1, Cleanup: -1, OnDiskCode: -1, Auth: "oauth2", SourceProtocol: c.sourceURL.Scheme,
		DestProtocol: c.destURL.Scheme, SourceWire: canonical(c.sourceURL.Scheme), DestWire: canonical(c.destURL.Scheme), Throughput: -1}
	b.Scitag = c.file.SciTag
	b.Translation = strings.TrimSuffix(b.SourceWire, "s") != strings.TrimSuffix(b.DestWire, "s")
	if c.job.User != "" {
		b.Auth = "certificate"
	}
	began := c.At
	if a := c.Ended; a != nil {
		began = a.Begin
		b.Began, b.Ended, b.Moved = a.Begin.UnixMilli(), a.End.UnixMilli(), a.Moved
		b.TransferTime = b.Ended - b.Began
		b.OperationTime = b.TransferTime
		if b.TransferTime > 0 && a.Fault == "" {
			b.Throughput = float64(size) / a.End.Sub(a.Begin).Seconds()
		}
		if a.Mode == transfer.Streamed {
			b.Type = "streamed"
		}
	} else if !c.File.Began.IsZero() {
		began = c.File.Began
	}
	if b.OperationTime == 0 {
		b.OverheadShare = -1
	}
	b.ID, b.Start, b.Complete = c.id(began), began.UnixMilli(), c.At.UnixMilli()
	c.outcome(&b)
	return b
}

// outcome sets the fields about the end of an attempt, or of a file.
func (c *changed) outcome(b *completeBody) {
	failed := transfer.Item{State: c.File.State, Fault: c.File.Fault, Reason: c.File.Reason}
	if a := c.Ended; a != nil && !c.File.State.Final() {
		failed.Fault, failed.Reason = a.Fault, a.Reason
	}
	again := c.Ended != nil && c.Ended.Fault != "" && !c.File.State.Final()
	switch state := StateOf(c.File); {
	case state == Canceled:
		b.Outcome, b.OutcomeFlag = "Abort", -1
		failed.Fault = transfer.RequestCancelled
	case state == Failed || again:
		b.Outcome = "Error"
	default:
		b.Outcome, b.OutcomeFlag = "Ok", 1
	}
	b.JobState = "UNKNOWN" // as in FTS3 for plain jobs
	last := b.LastHop || !b.Multihop
	switch {
	case again, b.Outcome == "Ok" && !last:
		b.JobState = Active
	case (b.Replicas || b.Multihop) && b.Outcome == "Ok":
		b.JobState = Finished
	case b.Replicas || b.Multihop:
		b.JobState = Failed
	}
	if b.Outcome == "Ok" {
		return
	}
	text := Reason(&failed)
	b.Error = printable(text)
	b.ErrorScope, b.ErrorCode = errorOf(text)
	b.ErrorCategory = strings.ToUpper(strings.ReplaceAll(syscall.Errno(b.ErrorCode).Error(), " ", "_"))
	if b.RetryMax = c.job.Retry; c.Ended != nil {
		b.Retry = int(max(c.Ended.Epoch-1, 0))
	}
	b.ErrorPhase = "TRANSFER"
	switch failed.Fault {
	case transfer.SourceBad, transfer.Occupied, transfer.DestFull, transfer.Denied, transfer.Unreachable:
		b.ErrorPhase = "TRANSFER_PREPARATION"
	}
	switch failed.Fault {
	case transfer.Transient, transfer.Unreachable, transfer.Throttled, transfer.DestFull, transfer.Checksum, transfer.LeaseLost,
		transfer.MoverStopped, transfer.SiteRefuses:
		b.Recoverable = true
	}
}

// lastHop reports whether the file is the last file of a job with several hops.
func (c *changed) lastHop() bool {
	n := int64(0)
	for _, p := range c.Job.Parts {
		if !p.Terms.Delete {
			n += p.Count.Files
		}
	}
	return c.multihop() && int64(c.File.Number) == n-1
}

func (c *changed) state() stateBody {
	b := stateBody{User: c.user, Source: c.source, Dest: c.file.Dest, VO: c.job.VO, SourceSE: seOf(c.source), DestSE: seOf(c.file.Dest),
		Job: c.Job.ID, File: c.File.ID, JobState: State(c.Job), FileState: StateOf(c.File), Retry: max(c.File.Attempts-1, 0),
		RetryMax: c.job.Retry, Size: c.file.Size, Time: c.At.UnixMilli(), Submitted: c.Job.Made.UnixMilli(), Reason: Reason(&c.File.Item),
		Endpoint: c.Endpoint, JobMetadata: c.job.Metadata, FileMetadata: c.fileMetadata}
	if Open(b.FileState) && !Open(b.JobState) { // the job has ended since
		b.JobState = b.FileState
	}
	for _, t := range c.File.Tape {
		if t.Kind == queue.Stage {
			b.Staging, b.StagingFrom, b.StagingTo = true, milli(t.Began), milli(t.Ended)
		} else {
			b.Archiving, b.ArchiveFrom, b.ArchiveTo = true, milli(t.Began), milli(t.Ended)
		}
	}
	return b
}

// milli returns a time in milliseconds since 1970, or 0 for the zero time.
func milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func parsed(text string) url.URL {
	u, err := url.Parse(text)
	if err != nil {
		return url.URL{}
	}
	return *u
}

// longestError bounds t__error_message, as in FTS3.
const longestError = 1024

// printable returns a text in ASCII without quotes, as FTS3 sends errors.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\'' || r == '"':
			return -1
		case r < ' ' || r > '~':
			return ' '
		}
		return r
	}, text)
	return text[:min(len(text), longestError)]
}

// reasonHead matches the beginning of a reason in FTS's notation.
var reasonHead = regexp.MustCompile(`^([A-Z]+)[A-Z ]* \[(\d+)\] `)

// errorOf parses the scope and the number of a reason in FTS's notation. For other reasons it
// returns the scope and number of an input/output error.
func errorOf(reason string) (scope string, code int) {
	found := reasonHead.FindStringSubmatch(reason)
	if found == nil {
		return "TRANSFER", int(syscall.EIO)
	}
	code, err := strconv.Atoi(found[2])
	if err != nil {
		return found[1], int(syscall.EIO)
	}
	return found[1], code
}
