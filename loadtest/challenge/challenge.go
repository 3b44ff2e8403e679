// Package challenge describes data challenges: rates of third-party copies on the links between
// sites, held for a time, to show that storage, network, transfer service and credentials sustain
// them.
//
// The package contains the format of a challenge's file and its checks. The packages below it carry
// a challenge out: control decides how many copies each link has in flight, inject has a service
// make the copies, sites makes and removes the files, and conduct is the sequence. A challenge has a
// run directory like any load test.
package challenge

import (
	"weir/internal/unit"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
)

// A Challenge is a data challenge with all defaults filled in. It contains no secret; it is part of
// the plan in the run directory.
type Challenge struct {
	Name   string    `json:"name" default:"challenge" doc:"Name of the challenge and its run directory: letters, digits, dots, _ and -."`
	Inject Injection `json:"inject" doc:"Service that makes the copies."`
	Sites  []Site    `json:"sites" required:"true" doc:"Storage of the sites."`
	Links  []Link    `json:"links,omitempty" doc:"Directed links and their target rates."`
	Matrix string    `json:"matrix,omitempty" doc:"CSV file of target rates: sources in the first column, destinations in the first line."`
	Unit   string    `json:"matrix_unit,omitempty" enum:"bit/s,kbit/s,Mbit/s,Gbit/s,Tbit/s,B/s,kB/s,MB/s,GB/s,TB/s,KiB/s,MiB/s,GiB/s,TiB/s" doc:"Unit of the numbers in matrix that have no unit."`
	// Distances and Limits are exports of Rucio and FTS. Neither is a target
	Distances string         `json:"distances,omitempty" doc:"JSON file of Rucio's distances: only these links are allowed."`
	Limits    []string       `json:"limits,omitempty" doc:"JSON files of the limits of links and storages of FTS."`
	Profile   []Stage        `json:"profile" required:"true" doc:"Share of the target rates over time."`
	Files     Files          `json:"files" doc:"Files that are copied."`
	Ceiling   unit.Bitrate   `json:"ceiling,omitempty" doc:"Highest rate of all links together. Default: no limit."`
	Timeout   unit.Duration  `json:"timeout" default:"1h" doc:"Time limit of a copy."`
	Verify    bool           `json:"verify" default:"true" doc:"Compare size and checksum of each copy with those of its source."`
	Hosts     []monitor.Host `json:"hosts,omitempty" doc:"Machines to monitor, besides those of the sites."`
	Seed      uint64         `json:"seed" default:"1" doc:"Start of all random choices."`
}

// A Method is a way to have copies made.
type Method string

// Methods of injection.
const (
	Direct Method = "direct" // weir sends the third-party requests to the sites itself
	FTS    Method = "fts"    // jobs of an FTS3 service
	Rucio  Method = "rucio"  // rules of Rucio
)

// An Injection is the service that makes the copies.
type Injection struct {
	By      Method       `json:"by" default:"direct" enum:"direct,fts,rucio" doc:"Third-party requests to the sites themselves, jobs of FTS, or rules of Rucio."`
	URL     string       `json:"url,omitempty" doc:"URL of the REST API of FTS or Rucio."`
	Auth    storage.Auth `json:"auth,omitzero" doc:"Authentication at FTS or Rucio."`
	AuthURL string       `json:"auth_url,omitempty" doc:"URL of Rucio's authentication server. Default: url."`
	Account string       `json:"account,omitempty" doc:"Account of Rucio."`
	Scope   string       `json:"scope,omitempty" doc:"Scope of Rucio in which files are registered."`
	// Rucio: the activity of its rules; FTS: the activity of its files
	Activity string `json:"activity,omitempty" doc:"Activity of the transfers, for shares of FTS and Rucio."`
}

// A Site is the storage of a site.
type Site struct {
	Name     string         `json:"name" required:"true" doc:"Name of the site: letters, digits, dots, _ and -."`
	URL      string         `json:"url" required:"true" doc:"Folder of the challenge at the site: davs, https, http, root or roots."`
	Root     string         `json:"root,omitempty" doc:"The same folder by root or roots, for links with that protocol."`
	RSE      string         `json:"rse,omitempty" doc:"Name of the site's RSE in Rucio. Default: its name."`
	Auth     storage.Auth   `json:"auth,omitzero" doc:"Authentication at the site."`
	Space    unit.Size      `json:"space,omitempty" doc:"Space that the challenge may use at the site. Default: no limit."`
	In       unit.Bitrate   `json:"in,omitempty" doc:"Rate that the site can receive. Default: unknown."`
	Out      unit.Bitrate   `json:"out,omitempty" doc:"Rate that the site can send. Default: unknown."`
	InFlight int            `json:"in_flight,omitempty" doc:"Largest number of copies from and to the site at once. Default: no limit."`
	Hosts    []monitor.Host `json:"hosts,omitempty" doc:"Machines of the site to monitor."`
}

// A Protocol is the protocol of a third-party copy.
type Protocol string

// Protocols of links.
const (
	WebDAV Protocol = "davs" // HTTP third-party copy, over https or http as the URLs of the sites have it
	XRootD Protocol = "root"
)

// A Mode is the site that moves the bytes.
type Mode string

// Modes of links. Copies by root are always pulled.
const (
	Pull Mode = "pull" // the destination fetches the file
	Push Mode = "push" // the source sends the file
)

// A Link is a directed link between two sites. In a file, a link with * sets properties of all links
// that the file names otherwise; a Challenge contains none.
type Link struct {
	From     string       `json:"from" required:"true" doc:"Name of the source; *: every site."`
	To       string       `json:"to" required:"true" doc:"Name of the destination; *: every site."`
	Rate     unit.Bitrate `json:"rate" doc:"Target rate of payload. Default: that of the matrix."`
	Protocol Protocol     `json:"protocol,omitempty" default:"davs" enum:"davs,root" doc:"Protocol of the copies."`
	Mode     Mode         `json:"mode,omitempty" default:"pull" enum:"pull,push" doc:"The destination fetches, or the source sends. FTS and Rucio choose themselves."`
	Streams  int          `json:"streams,omitempty" doc:"Connections of a copy. 0: chosen by the site."`
	InFlight int          `json:"in_flight,omitempty" default:"100" doc:"Largest number of copies at once."`
	// SciTag is the label of its flows: experiment and activity as one number from 65 to 65535, see scitags.org
	SciTag int `json:"scitag,omitempty" doc:"Flow label (SciTags) of the copies, 65 to 65535. Default: no label."`
}

// Name returns the name of the link.
func (l *Link) Name() string { return l.From + " to " + l.To }

// A Stage is a part of the profile: all links have the same share of their target rates.
type Stage struct {
	For unit.Duration `json:"for" required:"true" doc:"Duration of the stage."`
	At  Share         `json:"at" required:"true" doc:"Share of the target rates at its end; 0% is a pause, 120% is allowed."`
	// Ramp: the share changes evenly from that of the stage before
	Ramp bool `json:"ramp,omitempty" doc:"Change the share evenly over the stage, from that of the stage before."`
}

// Files describes the files that are copied.
type Files struct {
	Size    workload.Dist `json:"size" default:"1GiB" doc:"File size: fixed, uniform or by weights."`
	Sources int           `json:"sources" default:"10" doc:"Files that are made at each source, and copied again and again."`
	// Linger is the time for which a copy stays at its destination
	Linger unit.Duration `json:"linger,omitempty" default:"0s" doc:"Time after which a copy is removed; 0: at once."`
	Keep   bool          `json:"keep,omitempty" doc:"Keep the files at the sources for the next challenge."`
}

// A Reason is the controller's reason for the number of copies of a link.
type Reason string

// Reasons of the controller.
const (
	Paced     Reason = "paced"      // the next copy is not due yet: the link has its target rate
	Raised    Reason = "raised"     // the link is below its target: it gets more copies at once
	Saturated Reason = "saturated"  // more copies at once brought no higher rate
	Copies    Reason = "in_flight"  // the limit of copies of the link, or of one of its sites
	Ceiling   Reason = "ceiling"    // the rate of all links together
	Failing   Reason = "failing"    // copies fail: the link tries again after a pause
	LargeFile Reason = "large_file" // one file in flight is already more than the target rate needs
	Queued    Reason = "queued"     // the transfer service has copies that it has not begun
	Idle      Reason = "idle"       // the target is 0
	Stopped   Reason = "stopped"    // the challenge ends
)

// CopyID returns the id of the n-th copy of a link, from 0: the copies of all links are numbered in
// turn, from 1.
func (c *Challenge) CopyID(link int, n int64) int64 { return n*int64(len(c.Links)) + int64(link) + 1 }

// CopyOf returns the link of a copy and its number there, or -1 for an id that no copy has.
func (c *Challenge) CopyOf(id int64) (link int, n int64) {
	links := int64(len(c.Links))
	if id < 1 || links == 0 {
		return -1, 0
	}
	return int((id - 1) % links), (id - 1) / links
}
