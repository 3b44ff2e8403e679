package scenario

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"weir/internal/say"
	"weir/loadtest/challenge"
	"weir/loadtest/workload"
	"weir/storage"
)

// An Origin is the service from which clients of kind copy have the target's files copied.
type Origin struct {
	URL     string         `json:"url" required:"true" doc:"URL of the folder with the files, of the same protocol as the target."`
	Auth    storage.Auth   `json:"auth,omitzero" doc:"Authentication at the origin, as auth is at the target. Default: none."`
	Mode    challenge.Mode `json:"mode,omitempty" default:"pull" enum:"pull,push" doc:"The target fetches the files, or the origin sends them (not with root://)."`
	Streams int            `json:"streams,omitempty" doc:"Connections of a copy (davs://). 0: chosen by the service."`
	SciTag  int            `json:"scitag,omitempty" doc:"Label of the flows of the copies (scitags.org), 65 to 65535. Default: no label."`
}

// Service returns the origin for drivers, with credentials that were read.
func (o *Origin) Service(cred storage.Credentials) (*storage.Origin, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	return &storage.Origin{URL: u, Cred: cred, Push: o.Mode == challenge.Push, Streams: o.Streams, SciTag: o.SciTag}, nil
}

// plan returns a copy for a plan, nil for a nil o.
func (o *Origin) plan() *Origin {
	if o == nil {
		return nil
	}
	c := *o
	c.Auth = c.Auth.Discovered()
	return &c
}

// FilesAt returns the URL below which the files of the plan are: the origin's, or the target's.
func (p *Plan) FilesAt() string { return filesAt(p.Origin, p.Target) }

// FilesAt returns the URL below which the files of the scenario are: the origin's, or the target's.
func (s *Scenario) FilesAt() string { return filesAt(s.Origin, s.Target) }

func filesAt(o *Origin, target string) string {
	if o != nil {
		return o.URL
	}
	return target
}

// copies reports whether clients have files copied.
func (s *Scenario) copies() bool { return slices.Contains(s.operations(), string(workload.CopyWork)) }

const mostStreams = 100

// origin checks the origin of kind copy.
func (c *checker) origin() {
	o := c.Origin
	switch {
	case o == nil && c.copies():
		c.say("origin", "missing; kind copy copies files from another service to the target: name it, as in "+
			"origin: {url: https://localhost:8444/data}")
		return
	case o == nil:
		return
	case !c.copies():
		c.say("origin", "applies to kind copy only; use workload.kind copy, or omit origin")
		return
	}
	c.refuse(c.Target == BuiltIn, "target", "%s makes no third-party copies; name the URL of a server that does", BuiltIn)
	c.endpoint("origin.url", o.URL)
	if !c.wrong("origin.url") && c.Target != BuiltIn {
		c.originProtocol(o)
	}
	known := o.Mode == challenge.Pull || o.Mode == challenge.Push
	c.refuse(!known, "origin.mode", "unknown mode %q; use pull or push", string(o.Mode))
	c.refuse(o.SciTag != 0 && (o.SciTag < storage.LeastSciTag || o.SciTag > storage.MostSciTag), "origin.scitag",
		"%d is out of range; use %d to %d (experiment << 6 | activity), or omit it", o.SciTag, storage.LeastSciTag, storage.MostSciTag)
	c.refuse(o.Streams < 0 || o.Streams > mostStreams, "origin.streams", "%d is out of range; use 1 to %d, or omit it", o.Streams, mostStreams)
	c.refuse(len(c.Links) > 0, "link", "the bytes of third-party copies do not pass this machine, so no link can be emulated; omit link")
	c.refuse(c.On.Batch != "", "on", "clients of kind copy run on this machine only, as the bytes do not pass it; omit on")
	c.authAt("origin.auth", o.Auth)
}

// originProtocol checks whether the target can copy from the origin.
func (c *checker) originProtocol(o *Origin) {
	at, err := url.Parse(o.URL)
	if err != nil {
		return
	}
	to, err := url.Parse(c.Target)
	if err != nil {
		return
	}
	rootOrigin, rootTarget := rooted(at.Scheme), rooted(to.Scheme)
	switch {
	case rootOrigin != rootTarget:
		c.say("origin.url", "%s:// and %s:// cannot copy from each other; use the same protocol for target and origin", at.Scheme, to.Scheme)
	case rootTarget && o.Mode == challenge.Push:
		c.say("origin.mode", "with %s:// the target always fetches the files; use pull, or omit mode", to.Scheme)
	case rootTarget && o.Streams != 0:
		c.say("origin.streams", "the servers of %s:// choose their connections; omit streams", to.Scheme)
	case strings.EqualFold(at.Scheme, to.Scheme) && challenge.Folder(at) == challenge.Folder(to):
		c.say("origin.url", "is the target itself; name another service, or another folder of this one")
	}
}

// originText describes the origin and the way of the bytes.
func (p *Plan) originText() string {
	o := p.Origin
	text := o.URL + ", the target fetches the files"
	if o.Mode == challenge.Push {
		text = o.URL + ", which sends the files"
	}
	if o.Auth.Method != "" {
		text += ", auth " + string(o.Auth.Method)
	}
	if o.Streams > 0 {
		text += ", " + say.Plural(o.Streams, "stream")
	}
	if o.SciTag > 0 {
		text += fmt.Sprintf(", SciTag %d", o.SciTag)
	}
	return text + "; the bytes do not pass this machine"
}
