// Package catalog defines sites, and datasets of blocks of files with their replicas. It has no
// database: package catalog/store stores the catalog.
package catalog

import "time"

// A Site is a place for datasets: an agent's, or any HTTP endpoint.
type Site struct {
	Name    string    `json:"name"`
	Kind    SiteKind  `json:"kind"`
	URL     string    `json:"url,omitempty"` // of its endpoint; "" if other sites cannot connect to it
	Max     int       `json:"max,omitempty"` // concurrent copies; 0: only the links are limited
	Free    int64     `json:"free_bytes"`    // -1: not known
	Seen    time.Time `json:"seen,omitzero"` // when the coordinator last had contact with it
	Up      bool      `json:"up"`            // it can be reached now
	Problem string    `json:"problem,omitempty"`
}

// A Dataset is a named set of files, in blocks. Names are like /store/run1.
type Dataset struct {
	Name   string           `json:"name"`
	Blocks int              `json:"blocks"`
	Files  int64            `json:"files"`
	Bytes  int64            `json:"bytes"`
	At     map[string]int64 `json:"files_at,omitempty"` // site: the number of its files there
}

// A File is identified by its name, which is the same at all sites. Its path at a site is the
// site's root plus the name, unless the replica has a different path.
type File struct {
	Name  string `json:"name"`
	Block string `json:"block,omitempty"`
	Size  int64  `json:"size_bytes"`
	Adler string `json:"adler32,omitempty"`    // 8 hex digits
	By    string `json:"adler32_by,omitempty"` // the first reader of the checksum, if the file was registered without it
	More  string `json:"checksums,omitempty"`  // other checksums, as "sha256=...,md5=..."
}

// A Replica is a file at a site.
type Replica struct {
	File     string    `json:"file"`
	Site     string    `json:"site"`
	Path     string    `json:"path,omitempty"`    // below the site's root; "" is the name of the file
	Verified time.Time `json:"verified,omitzero"` // when its checksum was last read there; zero: never
	By       string    `json:"verified_by,omitempty"`
	Bad      string    `json:"bad,omitempty"` // why it is no longer a source
}

// An Entry is a file at a site.
type Entry struct {
	File
	Path     string    `json:"path,omitempty"`    // below the site's root, with slashes; "" is the name without its first slash
	Verified time.Time `json:"verified,omitzero"` // when its checksum was read there; zero: it was only declared
}
