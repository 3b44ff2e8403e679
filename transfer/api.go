package transfer

import "time"

// A Submission asks for a dataset, or some of its blocks or files, at a site.
type Submission struct {
	Key       string    `json:"key,omitempty"` // of who asks: the same key is the same request
	Dataset   string    `json:"dataset"`
	Block     string    `json:"block,omitempty"`
	Files     []string  `json:"files,omitempty"`
	To        string    `json:"to"`
	From      []string  `json:"from,omitempty"`     // only these sources
	Mode      Mode      `json:"mode,omitempty"`     // "": whatever works
	Share     string    `json:"share,omitempty"`    // activity; "" is default
	Priority  int       `json:"priority,omitempty"` // higher is sooner; -10 to 10
	Approve   bool      `json:"approve,omitempty"`  // at once, if who asks may
	Expires   time.Time `json:"expires,omitzero"`
	Tries     int       `json:"tries,omitempty"`     // of one file; 0 is 5
	Unchecked bool      `json:"unchecked,omitempty"` // files without a checksum are accepted, and said
	Comment   string    `json:"comment,omitempty"`
}

// A Request is a submission and what became of it.
type Request struct {
	ID int64 `json:"id"`
	Submission
	Status  Status    `json:"status"`
	By      string    `json:"by"`
	Decided string    `json:"decided_by,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Made    time.Time `json:"made"`
	Began   time.Time `json:"began,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	Asked   Asked     `json:"asked"` // as the catalog knew it when it was submitted
	Count   Counts    `json:"count"`
	Rate    float64   `json:"rate_bytes_per_second"` // of the last seconds
}

// Asked is how much a request asks for. Counts grow to it while the files are
// being written down.
type Asked struct {
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Counts are the files and bytes of a request by state. They add up to Files.
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
	Tries     int        `json:"tries"`
	Source    string     `json:"source,omitempty"` // of the last attempt
	Mode      Mode       `json:"mode,omitempty"`
	Stage     Stage      `json:"stage,omitempty"`
	Moved     int64      `json:"moved_bytes,omitempty"`
	NotBefore time.Time  `json:"not_before,omitzero"`
	Fault     ErrorClass `json:"fault,omitempty"`
	Reason    string     `json:"reason,omitempty"` // why it failed, or why it does not move now
	Ended     time.Time  `json:"ended,omitzero"`
}

// An Attempt is one try at one file. It is written once, when it ended.
type Attempt struct {
	Item   int64  `json:"item"`
	Source string `json:"source"`
	Dest   string `json:"dest"`
	Mode   Mode   `json:"mode"`
	Late   bool   `json:"late,omitempty"` // it came after its lease was given up, and changed nothing
	Outcome
}

// A Link is what the scheduler knows of the way from one site to another.
type Link struct {
	Source  string  `json:"source"`
	Dest    string  `json:"dest"`
	Active  int     `json:"active"`
	Limit   int     `json:"limit"`
	Why     string  `json:"why"`                   // the limit is what it is
	Rate    float64 `json:"rate_bytes_per_second"` // of the last seconds; 0 while nothing is copied
	Success float64 `json:"success"`               // of recent attempts, 0 to 1
}

// A Manifest is what a request came to: each file, and the digest of the list,
// so that two manifests can be told apart.
type Manifest struct {
	Request Request `json:"request"`
	Items   []Item  `json:"items"`
	Digest  string  `json:"sha256"` // of the lines "state name size adler32\n", sorted by name
}
