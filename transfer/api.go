package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"time"

	"weir/transfer/catalog"
)

// A Submission requests a dataset, or some of its blocks or files, at a site.
type Submission struct {
	Key       string    `json:"key,omitempty"` // submissions with the same key are one request
	Dataset   string    `json:"dataset"`
	Block     string    `json:"block,omitempty"`
	Files     []string  `json:"files,omitempty"`
	To        string    `json:"to"`
	From      []string  `json:"from,omitempty"`     // only these sources
	Mode      Mode      `json:"mode,omitempty"`     // "": any mode that works
	Share     string    `json:"share,omitempty"`    // activity; "" is default
	Priority  int       `json:"priority,omitempty"` // -10 to 10; higher is sooner
	Approve   bool      `json:"approve,omitempty"`  // approve at once, if the caller may
	Expires   time.Time `json:"expires,omitzero"`
	Tries     int       `json:"tries,omitempty"`     // of one file; 0 is 5
	Unchecked bool      `json:"unchecked,omitempty"` // accept files without a checksum and report them
	Comment   string    `json:"comment,omitempty"`
}

// Check returns an error if a source is also the destination, or if the mode, the priority or the number of tries is not possible.
func (s *Submission) Check() error {
	const mostTries = 100
	switch {
	case slices.Contains(s.From, s.To):
		return fmt.Errorf("%s is both source and destination", s.To)
	case s.Mode != "" && !slices.Contains(Modes(), s.Mode):
		return fmt.Errorf("mode %q: use pull, push or third, or say nothing", s.Mode)
	case s.Priority < -10 || s.Priority > 10:
		return fmt.Errorf("priority %d: use -10 to 10, higher is sooner", s.Priority)
	case s.Tries < 0 || s.Tries > mostTries:
		return fmt.Errorf("%d tries of a file: use 1 to %d", s.Tries, mostTries)
	}
	return nil
}

// A Request is a submission and its state.
type Request struct {
	ID int64 `json:"id"`
	Submission
	Job     string    `json:"job,omitempty"` // of URL pairs, whose files it has; "": they are in the catalog
	Status  Status    `json:"status"`
	By      string    `json:"by"`
	Decided string    `json:"decided_by,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Made    time.Time `json:"made"`
	Began   time.Time `json:"began,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	Asked   Requested `json:"asked"` // when it was submitted
	Count   Counts    `json:"count"`
	Rate    float64   `json:"rate_bytes_per_second"` // of the last seconds; after the end, of the whole request, or 0 if it is not known
}

// Requested is the size of a request. Counts grow to it while the request is Resolving.
type Requested struct {
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Counts are the files and bytes of a request by state. The states add up to Files.
type Counts struct {
	Files     int64 `json:"files"`
	Bytes     int64 `json:"bytes"`
	Queued    int64 `json:"queued"`
	NoSource  int64 `json:"no_source"`
	Leased    int64 `json:"leased"`
	Done      int64 `json:"done"`
	Skipped   int64 `json:"skipped"`
	Failed    int64 `json:"failed"`
	Cancelled int64 `json:"cancelled"`
	DoneBytes int64 `json:"done_bytes"` // done and skipped
	Attempts  int64 `json:"attempts"`
}

// An Item is one file of a request.
type Item struct {
	ID        int64      `json:"id"`
	Name      string     `json:"name"`
	Size      int64      `json:"size_bytes"`
	Adler     string     `json:"adler32,omitempty"`
	State     State      `json:"state"`
	Tries     int        `json:"tries"`            // failed attempts, without those that their mover stopped or that a site refused
	Source    string     `json:"source,omitempty"` // of the last attempt
	Mode      Mode       `json:"mode,omitempty"`
	Stage     Stage      `json:"stage,omitempty"`
	Moved     int64      `json:"moved_bytes,omitempty"`
	NotBefore time.Time  `json:"not_before,omitzero"`
	Fault     ErrorClass `json:"fault,omitempty"`
	Reason    string     `json:"reason,omitempty"` // why it failed, or why it waits
	Ended     time.Time  `json:"ended,omitzero"`
	Held      bool       `json:"held,omitempty"` // it waits for a tape system or another file of its job; Reason has the details
}

// An Attempt is one try at one file. It is recorded when it has ended.
type Attempt struct {
	Item   int64  `json:"item"`
	Source string `json:"source"`
	Dest   string `json:"dest"`
	Mode   Mode   `json:"mode"`
	Late   bool   `json:"late,omitempty"` // it ended after its lease had expired, and changed nothing
	Outcome
}

// A PastAttempt is a recorded attempt with the data for testing predictions.
type PastAttempt struct {
	Attempt
	Bytes  int64   `json:"bytes"`
	CPU    float64 `json:"source_cpu"`    // utilization of the source's host when it began, 0 to 1; negative: not known
	Memory float64 `json:"source_memory"` // utilization, as CPU
}

// A Link is the scheduler's state of the transfers from one site to another.
type Link struct {
	Source  string  `json:"source"`
	Dest    string  `json:"dest"`
	Active  int     `json:"active"`
	Limit   int     `json:"limit"`
	Why     string  `json:"why"`                   // the reason for the limit
	Rate    float64 `json:"rate_bytes_per_second"` // of the last seconds
	Success float64 `json:"success"`               // ratio of recent attempts, 0 to 1

	Cause LimitCause `json:"cause,omitempty"` // the kind of the reason; "" if the limit is of an older version
}

// A LimitCause is the kind of reason for the limit of a link.
type LimitCause string

// The causes. Only the last four are causes of changes.
const (
	LimitStart    LimitCause = "start"    // the link has no measurements yet
	LimitFixed    LimitCause = "fixed"    // the configuration sets it
	LimitFailures LimitCause = "failures" // too many of the last attempts failed
	LimitTrial    LimitCause = "trial"    // another limit is tried
	LimitGain     LimitCause = "gain"     // the limit on trial had more throughput, and the next limit is tried
	LimitNoGain   LimitCause = "no gain"  // the limit on trial had no more throughput: the previous limit applies again
)

// A LimitChange is a change of the limit of concurrent transfers of a link.
type LimitChange struct {
	ID      int64      `json:"id"` // grows; begins at 1 when the coordinator starts
	Time    time.Time  `json:"time"`
	Source  string     `json:"source"`
	Dest    string     `json:"dest"`
	Before  int        `json:"before"`
	Limit   int        `json:"limit"`
	Cause   LimitCause `json:"cause"`
	Why     string     `json:"why"`                   // a sentence
	Rate    float64    `json:"rate_bytes_per_second"` // in the second before
	Success float64    `json:"success"`               // ratio of recent attempts, 0 to 1
}

// A Manifest is the result of a request: each file, and a digest of the list.
type Manifest struct {
	Request Request `json:"request"`
	Items   []Item  `json:"items"`
	Digest  string  `json:"sha256"` // as of ManifestHash
}

// A ManifestHash computes the digest of a manifest: the SHA-256 of the lines
// "STATE NAME SIZE ADLER32\n" in the order of the names.
type ManifestHash struct {
	hash hash.Hash
	line []byte
}

// NewManifestHash returns the hash of an empty manifest.
func NewManifestHash() *ManifestHash { return &ManifestHash{hash: sha256.New()} }

// Add adds the next file.
func (m *ManifestHash) Add(one Item) {
	m.line = fmt.Appendf(m.line[:0], "%s %s %d %s\n", one.State, one.Name, one.Size, one.Adler)
	m.hash.Write(m.line) // never fails
}

// Digest returns the digest of the files so far, in hex.
func (m *ManifestHash) Digest() string { return hex.EncodeToString(m.hash.Sum(nil)) }

// A Filter selects requests. Empty fields select all.
type Filter struct {
	Status  Status `json:"status,omitempty"`
	Open    bool   `json:"open,omitempty"` // only requests that have not ended
	To      string `json:"to,omitempty"`
	Dataset string `json:"dataset,omitempty"`
	By      string `json:"by,omitempty"`
	Before  int64  `json:"before,omitempty"` // only lower ids: the next page of a list, which begins with the newest
	Limit   int    `json:"limit,omitempty"`  // of the response; 0 is 100, at most 1000
}

// An Event is a change that is reported to followers of events. Ids grow; old events are removed.
type Event struct {
	ID      int64     `json:"id"`
	Time    time.Time `json:"time"`
	Request int64     `json:"request,omitempty"`
	Item    int64     `json:"item,omitempty"`   // of a file that failed
	Status  Status    `json:"status,omitempty"` // of the request, after the event
	Text    string    `json:"text"`             // a sentence
}

// An Explanation lists the reasons why the files of a request do not move now, or the steps that
// are under way.
type Explanation struct {
	Request Request  `json:"request"`
	Reasons []Reason `json:"reasons"` // by number of files, descending
}

// A Reason applies to some files of a request.
type Reason struct {
	Files int64  `json:"files"`
	File  string `json:"file,omitempty"` // one of them
	Text  string `json:"text"`           // a sentence
}

// A NewSite adds a site without an agent. Agents add their own.
type NewSite struct {
	Name  string `json:"name"`
	URL   string `json:"url"`             // of the folder that file names are relative to
	Token string `json:"token,omitempty"` // bearer token of the endpoint; stored encrypted, never shown
	Pin   string `json:"pin,omitempty"`   // SHA-256 of its certificate, if that is self-signed
	Max   int    `json:"max,omitempty"`   // concurrent transfers

	Servers []string `json:"servers,omitempty"`    // redirect targets that may receive Token: "host", "host:port", "*.domain"
	Lend    bool     `json:"lend_token,omitempty"` // agents and other sites that copy from or to it get Token
}

// NewFiles adds files of a dataset that a site has. Files that the dataset already has must have
// the same size and checksum.
type NewFiles struct {
	Dataset string    `json:"dataset"`
	Site    string    `json:"site"`
	By      string    `json:"verified_by,omitempty"` // the agent or user that has just computed the checksums there; "": they are not verified
	Files   []NewFile `json:"files"`                 // at most MaxNewFiles
}

// MaxNewFiles limits NewFiles.Files.
const MaxNewFiles = 5000

// A NewFile is a file with its path at the site.
type NewFile struct {
	catalog.File
	Path string `json:"path,omitempty"` // below the site's root; "" is the name
}

// FileReplicas is a file with its replicas.
type FileReplicas struct {
	catalog.File
	Replicas []catalog.Replica `json:"replicas,omitempty"`
}

// A NewScan has an agent list the files below Path, which are added to the dataset.
type NewScan struct {
	Dataset string `json:"dataset"`
	Site    string `json:"site"`
	Path    string `json:"path"` // below the site's root
}

// A ScanState is the progress of a scan.
type ScanState struct {
	ID      int64    `json:"id"`
	Files   int64    `json:"files"`
	Bytes   int64    `json:"bytes"`
	Done    bool     `json:"done"`
	Problem []string `json:"problems,omitempty"` // at most 100
}

// A NewToken describes a token to issue.
type NewToken struct {
	Subject string        `json:"subject"`
	Roles   []string      `json:"roles"` // read, submit, approve, admin or agent:SITE, as scopes: weir.read
	Life    time.Duration `json:"life_ns,omitempty"`

	LifeSeconds float64 `json:"life_seconds,omitempty"` // instead of Life
}

// An IssuedToken is a token that was issued.
type IssuedToken struct {
	Token string `json:"token"` // a secret
	ID    string `json:"id"`
}

// A History is a page of attempts of the past.
type History struct {
	Tries []PastAttempt `json:"tries"`
	Next  int64         `json:"next"` // the value of after for the next page; 0: this is the last page
}

// A Token describes an issued token. The token itself is not stored.
type Token struct {
	ID        string    `json:"id"`
	Subject   string    `json:"subject"`
	Roles     []string  `json:"roles"`
	By        string    `json:"made_by"`
	Made      time.Time `json:"made"`
	Expires   time.Time `json:"expires"`
	RevokedBy string    `json:"revoked_by,omitempty"`
	Revoked   time.Time `json:"revoked,omitzero"`
}

// A Notification reports to a target that a request has ended.
type Notification struct {
	Target    string    `json:"target"`
	ID        string    `json:"id"`
	Request   int64     `json:"request"`
	Status    Status    `json:"status"` // of the request
	Made      time.Time `json:"made"`
	Due       time.Time `json:"due"` // of the next attempt
	Tries     int       `json:"tries"`
	Problem   string    `json:"problem,omitempty"` // of the last attempt
	Ended     time.Time `json:"ended,omitzero"`    // when it was delivered or given up
	Delivered bool      `json:"delivered"`
}

// NotifyTest requests a test of notifications.
type NotifyTest struct {
	Target string `json:"target,omitempty"` // "": all
}

// NotifyResult is the result of the test of a target.
type NotifyResult struct {
	Target  string  `json:"target"`
	Kind    string  `json:"kind"`              // webhook, command, mail
	Problem string  `json:"problem,omitempty"` // "": it was delivered
	Seconds float64 `json:"duration_seconds"`
}
