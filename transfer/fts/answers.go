package fts

import "encoding/json"

// The types below describe the responses in the OpenAPI description of the service. A test decodes
// real responses into them.

// A VersionNumber is a version in [ServiceVersion].
type VersionNumber struct {
	Major int `json:"major"`
	Minor int `json:"minor"`
	Patch int `json:"patch"`
}

// A ServiceVersion is the version of FTS that the service emulates.
type ServiceVersion struct {
	API        VersionNumber `json:"api"`
	Core       VersionNumber `json:"core"`
	Schema     VersionNumber `json:"schema"`
	Delegation VersionNumber `json:"delegation"`
	Weir       string        `json:"weir"` // version of weir
}

// A User is the caller, with the properties that FTS reports.
type User struct {
	DN           []string          `json:"dn"`
	UserDN       string            `json:"user_dn"`
	VOs          []string          `json:"vos"`
	VOIDs        []string          `json:"vos_id"`
	Credentials  []string          `json:"voms_cred"`
	Roles        []string          `json:"roles"` // of weir
	Root         bool              `json:"is_root"`
	Method       string            `json:"method"` // certificate or oauth2
	Level        map[string]string `json:"level"`
	BaseID       string            `json:"base_id"`
	DelegationID string            `json:"delegation_id"`
}

// A NewJob is a job to be submitted. docs/fts.md lists the parameters.
type NewJob struct {
	Files  []NewJobFile   `json:"files,omitempty"`
	Delete []any          `json:"delete,omitempty"` // URLs of files to remove, instead of files
	Params map[string]any `json:"params,omitempty"`
}

// A NewJobFile is a file of a job.
type NewJobFile struct {
	Sources           []string `json:"sources"` // URLs
	Destinations      []string `json:"destinations"`
	Checksum          string   `json:"checksum,omitempty"` // ADLER32:DIGITS
	Filesize          int64    `json:"filesize,omitempty"` // bytes
	Activity          string   `json:"activity,omitempty"`
	Strategy          string   `json:"selection_strategy,omitempty"`
	Metadata          any      `json:"metadata,omitempty"`
	SourceTokens      []string `json:"source_tokens,omitempty"`
	DestinationTokens []string `json:"destination_tokens,omitempty"`
	Staging           any      `json:"staging_metadata,omitempty"` // an object for the tape system of the source
	Archive           any      `json:"archive_metadata,omitempty"` // an object for the tape system of the destination
	SciTag            int      `json:"scitag,omitempty"`           // label of its flows, 65 to 65535
}

// A SubmittedJob is the response to a submission.
type SubmittedJob struct {
	ID string `json:"job_id"`
}

// JobChange changes a job that has not ended.
type JobChange struct {
	Params map[string]any `json:"params"` // priority, 1 to 5
}

// A JobAnswer is a job. Times are in UTC, without a zone. Fields that FTS has and weir does not use
// are constant.
type JobAnswer struct {
	ID              string          `json:"job_id"`
	State           string          `json:"job_state"`
	Type            string          `json:"job_type"`
	UserDN          string          `json:"user_dn"`
	VO              string          `json:"vo_name"`
	Submitted       *string         `json:"submit_time" jsonschema:"nullable"`
	Finished        *string         `json:"job_finished" jsonschema:"nullable"`
	SourceSE        *string         `json:"source_se" jsonschema:"nullable"`
	DestSE          *string         `json:"dest_se" jsonschema:"nullable"`
	Verify          string          `json:"verify_checksum"`
	Retry           int             `json:"retry"`
	RetryDelay      int             `json:"retry_delay"`
	Overwrite       *string         `json:"overwrite_flag" jsonschema:"nullable"`
	InQueue         *int64          `json:"max_time_in_queue" jsonschema:"nullable"` // in Unix time
	Priority        int             `json:"priority"`
	Metadata        json.RawMessage `json:"job_metadata"`
	Reason          *string         `json:"reason" jsonschema:"nullable"`
	Cancelled       bool            `json:"cancel_job"`
	Host            string          `json:"submit_host"`
	CredID          string          `json:"cred_id"`
	BringOnline     int             `json:"bring_online"`
	ArchiveTimeout  int             `json:"archive_timeout"`
	PinLifetime     int             `json:"copy_pin_lifetime"`
	SpaceToken      string          `json:"space_token"`
	SourceSpace     string          `json:"source_space_token"`
	InternalParams  *string         `json:"internal_job_params" jsonschema:"nullable"`
	DestinationFile bool            `json:"dst_file_report"`
	QoS             *string         `json:"target_qos" jsonschema:"nullable"`
	Project         *string         `json:"os_project_id" jsonschema:"nullable"`

	HTTPStatus  string           `json:"http_status,omitempty"`  // in responses about several jobs
	HTTPMessage string           `json:"http_message,omitempty"` // likewise
	Files       []map[string]any `json:"files,omitempty"`        // with files=: the fields that it names
}

// A FileAnswer is a file of a job with one of its sources.
type FileAnswer struct {
	JobID        string          `json:"job_id"`
	ID           int64           `json:"file_id"`
	Index        int             `json:"file_index"`
	VO           string          `json:"vo_name"`
	Priority     int             `json:"priority"`
	Activity     string          `json:"activity"`
	Source       string          `json:"source_surl"`
	SourceSE     string          `json:"source_se"`
	Dest         string          `json:"dest_surl"`
	DestSE       string          `json:"dest_se"`
	Checksum     string          `json:"checksum"`
	UserFilesize int64           `json:"user_filesize"` // as it was submitted
	Filesize     int64           `json:"filesize"`
	Strategy     string          `json:"selection_strategy"`
	Metadata     json.RawMessage `json:"file_metadata"`
	Retry        int             `json:"retry"`
	State        string          `json:"file_state"`
	Reason       *string         `json:"reason" jsonschema:"nullable"`
	Began        *string         `json:"start_time" jsonschema:"nullable"`
	Ended        *string         `json:"finish_time" jsonschema:"nullable"`
	Host         string          `json:"transfer_host"`
	Duration     *float64        `json:"tx_duration" jsonschema:"nullable"` // seconds
	Throughput   *float64        `json:"throughput" jsonschema:"nullable"`  // MiB/s
	Staged       *string         `json:"staging_finished" jsonschema:"nullable"`
	Archived     *string         `json:"archive_finish_time" jsonschema:"nullable"`
}

// A DeletionAnswer is a file of a deletion job.
type DeletionAnswer struct {
	JobID    string          `json:"job_id"`
	ID       int64           `json:"file_id"`
	State    string          `json:"file_state"` // DELETE, STARTED, FINISHED, FAILED or CANCELED
	Source   string          `json:"source_surl"`
	SourceSE string          `json:"source_se"`
	Reason   *string         `json:"reason" jsonschema:"nullable"`
	Began    *string         `json:"start_time" jsonschema:"nullable"`
	Ended    *string         `json:"finish_time" jsonschema:"nullable"`
	Retry    int             `json:"retry"`
	Metadata json.RawMessage `json:"file_metadata"`
	VO       string          `json:"vo_name"`
}

// A RetryAnswer is a failed attempt at a file.
type RetryAnswer struct {
	Attempt int     `json:"attempt"`
	FileID  int64   `json:"file_id"`
	Time    string  `json:"datetime"`
	Reason  string  `json:"reason"`
	Host    string  `json:"transfer_host"`
	LogFile *string `json:"log_file" jsonschema:"nullable"`
}

// A CancelledAnswer has the numbers of cancelled files and jobs.
type CancelledAnswer struct {
	Files   int64    `json:"affected_files"`
	Deletes int64    `json:"affected_dm"`
	Jobs    int64    `json:"affected_jobs"`
	IDs     []string `json:"-"` // of the jobs
}

// A NewBan bans a storage element.
type NewBan struct {
	Storage string `json:"storage"`           // such as https://se.example.org, or the name of a site
	Status  string `json:"status,omitempty"`  // cancel or wait; default: cancel
	Timeout int64  `json:"timeout,omitempty"` // with wait: seconds until waiting files are cancelled; 0: never
	Submit  bool   `json:"allow_submit,omitempty"`
	VO      string `json:"vo_name,omitempty"` // *
	Message string `json:"message,omitempty"`
}

// A NewUserBan bans a user.
type NewUserBan struct {
	DN      string `json:"user_dn"`
	Message string `json:"message,omitempty"`
}

// A BanAnswer is a ban of a storage element or of a user.
type BanAnswer struct {
	SE      string `json:"se,omitempty"`
	DN      string `json:"dn,omitempty"`
	Message string `json:"message"`
	Made    string `json:"addition_time"`
	By      string `json:"admin_dn"`
	VO      string `json:"vo,omitempty"`
	Status  string `json:"status"`            // CANCEL, WAIT or WAIT_AS
	Timeout int64  `json:"timeout,omitempty"` // seconds
}

// An OptimizerAnswer is a decision about a link. Rates are in bytes per second.
type OptimizerAnswer struct {
	Time       string  `json:"datetime"`
	Source     string  `json:"source_se"`
	Dest       string  `json:"dest_se"`
	Active     int     `json:"active"`        // limit of concurrent copies of the link
	Now        int     `json:"actual_active"` // its present number
	Diff       int     `json:"diff"`          // change of Active
	Throughput float64 `json:"throughput"`
	EMA        float64 `json:"ema"`
	Success    float64 `json:"success"` // percent
	Why        string  `json:"rationale"`
}

// A HostAnswer has the numbers of running transfers.
type HostAnswer struct {
	Active  int `json:"active"`
	Staging int `json:"staging"`
}

// A DelegationAnswer has the end of the validity of the delegated proxy.
type DelegationAnswer struct {
	Until      string   `json:"termination_time"`
	Attributes []string `json:"voms_attrs"`
}

// A JobRefusal is the reason why a job cannot be shown or changed, in responses about jobs by their
// ids.
type JobRefusal struct {
	ID      string `json:"job_id"`
	Status  string `json:"http_status"` // such as 404 Not Found
	Message string `json:"http_message"`
}

// A Refusal is the response to a request that is refused.
type Refusal struct {
	Status  string `json:"status"` // such as 404 Not Found
	Message string `json:"message"`
}
