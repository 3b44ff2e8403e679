// Package tape sends requests to the tape systems of storage endpoints, to bring files online and
// to check whether files are on tape. It is a client of the WLCG Tape REST API, version 1
// (github.com/wlcg-storage/wlcg-tape-rest-api).
package tape

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"weir/internal/tpc"
)

// WellKnown is the path at which an endpoint publishes the address of its API.
const WellKnown = "/.well-known/wlcg-tape-rest-api"

// Limits of responses and of one request.
const (
	maxAnswer = 64 << 20
	askTime   = 2 * time.Minute
)

// An API is the API of one tape system. Its methods may be called by several goroutines.
type API struct {
	Client *tpc.Client
	Target tpc.Target // the base of its URLs, with the credentials
	Site   string     // the name that the tape system gives itself, for metadata
}

// Discover finds the API of an endpoint: t is any URL there. The API must be at the same host,
// which t's token is for. Errors are *tpc.Error; its kind is Missing or Unsupported if the endpoint
// has no API.
func Discover(ctx context.Context, c *tpc.Client, t tpc.Target) (API, error) {
	at, err := url.Parse(t.URL)
	if err != nil {
		return API{}, &tpc.Error{Kind: tpc.Unsupported, Text: "the URL of the endpoint cannot be read"}
	}
	t.URL = (&url.URL{Scheme: at.Scheme, Host: at.Host, Path: WellKnown}).String()
	var out struct {
		Site      string `json:"sitename"`
		Endpoints []struct {
			URI     string `json:"uri"`
			Version string `json:"version"`
		} `json:"endpoints"`
	}
	err = ask(ctx, c, http.MethodGet, t, nil, &out)
	switch kind := tpc.KindOf(err); {
	case kind == tpc.Missing, kind == tpc.Denied: // the document is public: XRootD denies paths that it does not export
		return API{}, &tpc.Error{Kind: tpc.Unsupported, Text: fmt.Sprintf("%s has no WLCG Tape REST API: %v", at.Host, err), Err: err}
	case err != nil:
		return API{}, err
	}
	for _, e := range out.Endpoints {
		if e.Version != "v1" {
			continue
		}
		u, err := url.Parse(e.URI)
		switch {
		case err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "":
			return API{}, &tpc.Error{Kind: tpc.Unsupported, Text: fmt.Sprintf("the tape API of %s has a URL that cannot be used", at.Host)}
		case u.Scheme != at.Scheme && u.Scheme != "https", !strings.EqualFold(u.Hostname(), at.Hostname()):
			return API{}, &tpc.Error{Kind: tpc.Unsupported, Text: fmt.Sprintf("the tape API of %s is at %.100q: its credentials are not sent there",
				at.Host, u.Scheme+"://"+u.Host)}
		}
		t.URL = strings.TrimSuffix(e.URI, "/")
		return API{c, t, out.Site}, nil
	}
	return API{}, &tpc.Error{Kind: tpc.Unsupported, Text: fmt.Sprintf("%s has no version v1 of the WLCG Tape REST API", at.Host)}
}

// A File is a file that is to be brought online.
type File struct {
	Path     string
	Lifetime time.Duration   // time for which it is needed on disk; 0: the tape system decides
	Metadata json.RawMessage // for the tape system, by its name; may be nil
}

// Stage requests that files are brought online. It returns the id of the request.
func (a API) Stage(ctx context.Context, files []File) (id string, err error) {
	type one struct {
		Path     string          `json:"path"`
		Lifetime string          `json:"diskLifetime,omitempty"`
		Metadata json.RawMessage `json:"targetedMetadata,omitempty"`
	}
	var in struct {
		Files []one `json:"files"`
	}
	for _, f := range files {
		o := one{Path: f.Path, Metadata: f.Metadata}
		if f.Lifetime > 0 {
			o.Lifetime = fmt.Sprintf("PT%dS", int64(f.Lifetime.Seconds()))
		}
		in.Files = append(in.Files, o)
	}
	var out struct {
		ID string `json:"requestId"`
	}
	if err := a.ask(ctx, http.MethodPost, "/stage", in, &out); err != nil {
		return "", err
	}
	if out.ID == "" || len(out.ID) > 500 {
		return "", &tpc.Error{Kind: tpc.Broken, Begun: true, Text: "the tape system gave its request no id"}
	}
	return out.ID, nil
}

// A Status is the state that a tape system reports for a file that is brought online.
type Status struct {
	OnDisk bool
	Failed string // why it will not be; "": it may
}

// Progress returns the files of a request by path.
func (a API) Progress(ctx context.Context, id string) (map[string]Status, error) {
	var out struct {
		Files []struct {
			Path   string `json:"path"`
			Error  string `json:"error"`
			State  string `json:"state"`
			OnDisk bool   `json:"onDisk"`
		} `json:"files"`
	}
	if err := a.ask(ctx, http.MethodGet, "/stage/"+url.PathEscape(id), nil, &out); err != nil {
		return nil, err
	}
	all := map[string]Status{}
	for _, f := range out.Files {
		s := Status{OnDisk: f.OnDisk || f.State == "COMPLETED"}
		switch {
		case s.OnDisk:
		case f.Error != "":
			s.Failed = tpc.FirstLine(f.Error)
		case f.State == "FAILED" || f.State == "CANCELLED":
			s.Failed = "the tape system answers " + f.State
		}
		all[Clean(f.Path)] = s
	}
	return all, nil
}

// Cancel withdraws files of a request, which then need not be brought online.
func (a API) Cancel(ctx context.Context, id string, paths []string) error {
	return a.ask(ctx, http.MethodPost, "/stage/"+url.PathEscape(id)+"/cancel", map[string][]string{"paths": paths}, nil)
}

// Release reports that the copies on disk of files of a request are no longer needed.
func (a API) Release(ctx context.Context, id string, paths []string) error {
	return a.ask(ctx, http.MethodPost, "/release/"+url.PathEscape(id), map[string][]string{"paths": paths}, nil)
}

// A Place is the location of a file: disk, tape, or disk and tape.
type Place struct {
	OnTape bool
	Failed string // why it will not be on tape; "": it may
}

// Places returns where files are, by path. A tape system may leave some out.
func (a API) Places(ctx context.Context, paths []string) (map[string]Place, error) {
	var out []struct {
		Path     string `json:"path"`
		Locality string `json:"locality"`
		Error    string `json:"error"`
	}
	if err := a.ask(ctx, http.MethodPost, "/archiveinfo", map[string][]string{"paths": paths}, &out); err != nil {
		return nil, err
	}
	all := map[string]Place{}
	for _, f := range out {
		p := Place{OnTape: f.Locality == "TAPE" || f.Locality == "DISK_AND_TAPE"}
		switch {
		case f.Error != "":
			p = Place{Failed: tpc.FirstLine(f.Error)}
		case f.Locality == "LOST" || f.Locality == "NONE":
			p.Failed = "the tape system answers " + f.Locality
		}
		all[Clean(f.Path)] = p
	}
	return all, nil
}

// Clean returns a path as Progress and Places have it: tape systems remove repeated slashes.
func Clean(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}

func (a API) ask(ctx context.Context, method, path string, in, out any) error {
	t := a.Target
	t.URL += path
	return ask(ctx, a.Client, method, t, in, out)
}

// ask sends a request with JSON, and decodes the response into out if it is not nil.
func ask(ctx context.Context, c *tpc.Client, method string, t tpc.Target, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	r := tpc.Request{Method: method, Target: t, Header: http.Header{"Accept": {"application/json"}}}
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Body = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.Length = int64(len(body))
	}
	res, err := c.Do(ctx, r)
	if err != nil {
		return err
	}
	defer func() {
		_, _ = io.CopyN(io.Discard, res.Body, 4<<10) // for the next question on the connection
		_ = res.Body.Close()
	}()
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return tpc.Answered("tape API", res)
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(out); err != nil {
		return &tpc.Error{Kind: tpc.Broken, Begun: true, Text: "tape API: the answer cannot be read", Err: err}
	}
	return nil
}
