package transfer

import (
	"time"

	"weir/transfer/catalog"
)

// A Filter says which requests are wanted. Empty fields want all.
type Filter struct {
	Status  Status `json:"status,omitempty"`
	Open    bool   `json:"open,omitempty"` // only those that have not ended
	To      string `json:"to,omitempty"`
	Dataset string `json:"dataset,omitempty"`
	By      string `json:"by,omitempty"`
	Before  int64  `json:"before,omitempty"` // only lower numbers: the next page of a list, which begins with the newest
	Limit   int    `json:"limit,omitempty"`  // of the answer; 0 is 100, at most 1000
}

// An Event is something that happened, for those who watch. Events are numbered
// as they are written; old ones are forgotten.
type Event struct {
	ID      int64     `json:"id"`
	Time    time.Time `json:"time"`
	Request int64     `json:"request,omitempty"`
	Item    int64     `json:"item,omitempty"`   // of a file that failed
	Status  Status    `json:"status,omitempty"` // of the request, after it
	Text    string    `json:"text"`             // a sentence for people
}

// An Explanation says why the files of a request that have not ended do not
// move now, or what they are doing.
type Explanation struct {
	Request Request  `json:"request"`
	Reasons []Reason `json:"reasons"` // the most files first
}

// A Reason holds for some files of a request.
type Reason struct {
	Files int64  `json:"files"`
	File  string `json:"file,omitempty"` // one of them
	Text  string `json:"text"`           // a sentence
}

// A NewSite is what is told of a site when it is added. Agents add their own.
type NewSite struct {
	Name  string `json:"name"`
	URL   string `json:"url"`             // of the folder below which files have their names
	Token string `json:"token,omitempty"` // bearer of the endpoint; kept encrypted, never shown
	Pin   string `json:"pin,omitempty"`   // SHA-256 of its certificate, if that is self-made
	Max   int    `json:"max,omitempty"`   // copies at once

	Servers []string `json:"servers,omitempty"`    // data servers that it redirects to, which may see the token: "host", "host:port", "*.domain"
	Lend    bool     `json:"lend_token,omitempty"` // agents and other sites that copy from or to it get the token
}

// NewFiles are files of a dataset that a site has. Files that the dataset has
// already must have the same size and checksum.
type NewFiles struct {
	Dataset string    `json:"dataset"`
	Site    string    `json:"site"`
	By      string    `json:"verified_by,omitempty"` // who has just read the checksums there; "": nobody did
	Files   []NewFile `json:"files"`                 // at most MaxNewFiles
}

// MaxNewFiles is how many files are added at a time.
const MaxNewFiles = 5000

// A NewFile is a file with its place at the site.
type NewFile struct {
	catalog.File
	Path string `json:"path,omitempty"` // below the site's root; "" is the name
}

// A Placed file is one with its replicas.
type Placed struct {
	catalog.File
	Replicas []catalog.Replica `json:"replicas,omitempty"`
}

// A NewScan has an agent look for files: those below Path become the dataset's.
type NewScan struct {
	Dataset string `json:"dataset"`
	Site    string `json:"site"`
	Path    string `json:"path"` // below the site's root
}

// A ScanState is how far a scan is.
type ScanState struct {
	ID      int64    `json:"id"`
	Files   int64    `json:"files"`
	Bytes   int64    `json:"bytes"`
	Done    bool     `json:"done"`
	Problem []string `json:"problems,omitempty"` // at most 100
}

// A NewToken is whom a token is for and what it allows.
type NewToken struct {
	Subject string        `json:"subject"`
	Roles   []string      `json:"roles"` // weir.read, weir.submit, weir.approve, weir.admin, weir.agent:SITE
	Life    time.Duration `json:"life_ns"`
}

// A Token is one that somebody was given. What he shows is nowhere kept.
type Token struct {
	ID        string    `json:"id"`
	Subject   string    `json:"subject"`
	Roles     []string  `json:"roles"`
	By        string    `json:"made_by"` // who asked for it
	Made      time.Time `json:"made"`
	Expires   time.Time `json:"expires"`
	RevokedBy string    `json:"revoked_by,omitempty"`
	Revoked   time.Time `json:"revoked,omitzero"`
}

// A Try is an attempt of the past with what is needed to judge predictions.
type Try struct {
	Attempt
	Bytes  int64   `json:"bytes"`
	CPU    float64 `json:"source_cpu"`    // busy share of the source when it began, 0 to 1; below 0: not known
	Memory float64 `json:"source_memory"` // used share
}
