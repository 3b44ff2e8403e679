package fts

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"weir/internal/digest"
)

// Limits of submissions.
const (
	MaxBody     = 64 << 20 // bytes of the JSON
	maxFiles    = 100_000
	maxSources  = 64
	maxURL      = 1100 // bytes, as FTS
	maxMetadata = 16 << 10
)

// A Submission is a checked POST /jobs.
type Submission struct {
	Params
	Files   []File
	Deletes []Delete // then there are no Files
}

// A Delete is a file that will be removed.
type Delete struct {
	URL      *url.URL
	Text     string          // the URL as it was submitted
	Token    string          // "": no token. A secret
	Metadata json.RawMessage // nil: no metadata
}

// A File is a file of a submission.
type File struct {
	Sources      []*url.URL // https, http, roots or root
	Dest         *url.URL
	SourceTexts  []string // the URLs as they were submitted
	DestText     string
	Size         int64  // -1: not known
	Adler        string // 8 hex digits, or another checksum in the format of digest.Short; "": not known
	Checksum     string // as it was submitted, or ADLER32
	Strategy     string
	Activity     string
	Metadata     json.RawMessage // nil: no metadata
	Report       bool            // dst_file_report
	Staging      json.RawMessage // staging_metadata, for the tape system; nil: no metadata
	Archiving    json.RawMessage // archive_metadata, for the destination; nil: no metadata
	SciTag       int             // label of its flows; 0: no label
	SourceTokens []string        // as Sources, or empty. Secrets
	DestToken    string          // "": no token. A secret
}

// fileKeys are the keys of a file. Other keys are refused.
type fileKeys struct {
	Sources           []string        `json:"sources"`
	Destinations      []string        `json:"destinations"`
	SourceTokens      []string        `json:"source_tokens"`
	DestinationTokens []string        `json:"destination_tokens"`
	Metadata          json.RawMessage `json:"metadata"`
	FileMetadata      json.RawMessage `json:"file_metadata"`
	StagingMetadata   json.RawMessage `json:"staging_metadata"`
	ArchiveMetadata   json.RawMessage `json:"archive_metadata"`
	Filesize          *json.Number    `json:"filesize"`
	Checksum          *string         `json:"checksum"`
	Strategy          *string         `json:"selection_strategy"`
	Activity          *string         `json:"activity"`
	SciTag            json.RawMessage `json:"scitag"`
}

// Read reads and checks a submission. Its errors are *Error.
func Read(body io.Reader) (*Submission, error) {
	var in struct {
		Files   []json.RawMessage          `json:"files"`
		Params  map[string]json.RawMessage `json:"params"`
		Delete  []json.RawMessage          `json:"delete"`
		Staging json.RawMessage            `json:"staging"`
	}
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		if errors.As(err, new(*http.MaxBytesError)) {
			return nil, Refuse(http.StatusRequestEntityTooLarge, "the submission has more than %d bytes", MaxBody)
		}
		return nil, bad("Badly formatted JSON request: %.300s", jsonText(err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, bad("Badly formatted JSON request: trailing data")
	}
	switch {
	case len(in.Delete) > 0 && len(in.Files) > 0:
		return nil, bad("a job has either files or delete")
	case len(in.Delete) > maxFiles:
		return nil, bad("%d files: a job has at most %d", len(in.Delete), maxFiles)
	case !null(in.Staging):
		return nil, bad("staging: submit files with bring_online")
	case len(in.Files) == 0 && len(in.Delete) == 0:
		return nil, bad("No transfers or namespace operations specified")
	case len(in.Files) > maxFiles:
		return nil, bad("%d files: a job has at most %d", len(in.Files), maxFiles)
	}
	s := &Submission{}
	if err := s.read(in.Params); err != nil {
		return nil, err
	}
	if len(in.Delete) > 0 {
		return s, s.deletes(in.Delete)
	}
	dests := map[string]int{}
	for i, text := range in.Files {
		f, err := s.file(text)
		if err != nil {
			err.Message = fmt.Sprintf("file %d: %s", i, err.Message)
			return nil, err
		}
		if first, taken := dests[f.Dest.String()]; taken {
			return nil, Refuse(http.StatusConflict, "The submission is duplicated: files %d and %d have the same destination %.300s", first, i,
				f.Dest.Redacted())
		}
		dests[f.Dest.String()] = i
		s.Files = append(s.Files, *f)
	}
	return s, cmp.Or(s.tapes(), s.chain(), s.checksums())
}

// tapes checks the ends whose tape systems receive requests.
func (s *Submission) tapes() error {
	for i := range s.Files {
		if f := &s.Files[i]; s.Stage > 0 && !overHTTP(f.Sources[0]) || s.Archive > 0 && !overHTTP(f.Dest) {
			return bad("file %d: tape systems are asked by https: use https or davs at their end", i)
		}
	}
	return nil
}

// chain checks that each file comes from the destination of the previous file.
func (s *Submission) chain() error {
	if !s.Hops {
		return nil
	}
	if s.several() {
		return bad("Can not request multiple replica job together with multihop or session reuse at the same time")
	}
	for i := 1; i < len(s.Files); i++ {
		if on := s.Files[i-1].Dest; !overHTTP(on) && !s.Keeps() {
			return bad("file %d: copies on the way are removed with https or davs, not with %s", i-1, on.Scheme)
		}
		if from, to := s.Files[i].Sources[0].String(), s.Files[i-1].Dest.String(); from != to {
			return bad("file %d: a multihop job goes on from the destination of the file before, %.300s, and not from %.300s", i, to, from)
		}
	}
	return nil
}

// several reports whether a file has several sources.
func (s *Submission) several() bool {
	return slices.ContainsFunc(s.Files, func(f File) bool { return len(f.Sources) > 1 })
}

// Keeps reports whether the intermediate copies of a multihop job stay: Rucio registers them as
// replicas, and removes them itself.
func (s *Submission) Keeps() bool {
	var m struct {
		Issuer string `json:"issuer"`
	}
	return json.Unmarshal(s.Metadata, &m) == nil && m.Issuer == "rucio"
}

// deletes parses the files of a deletion job: URLs, or objects with a URL, metadata and a token.
// FTS's client sends lines of a file unchanged, so it leaves out blank lines and repetitions.
func (s *Submission) deletes(all []json.RawMessage) error {
	known := map[string]bool{}
	for i, text := range all {
		var in struct {
			URL      string          `json:"surl"`
			Metadata json.RawMessage `json:"metadata"`
			Token    string          `json:"token"`
		}
		var one Delete
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if json.Unmarshal(text, &in.URL) != nil {
			if err := d.Decode(&in); err != nil {
				return bad("delete %d: expected a URL, or an object with surl, metadata and token", i)
			}
		}
		if strings.TrimSpace(in.URL) == "" && in.Token == "" && null(in.Metadata) {
			continue
		}
		u, err := parse(in.URL)
		if err == nil {
			one = Delete{URL: u, Text: strings.TrimSpace(in.URL), Token: in.Token}
			err = tokenFor(u, in.Token, in.Token == "")
		}
		if err == nil && !overHTTP(u) {
			err = bad("scheme %s: files are removed with https or davs", u.Scheme)
		}
		if err == nil && !null(in.Metadata) {
			one.Metadata, err = metadata(in.Metadata, "metadata")
		}
		if err != nil {
			err.Message = fmt.Sprintf("delete %d: %s", i, err.Message)
			return err
		}
		if !known[u.String()] {
			known[u.String()] = true
			s.Deletes = append(s.Deletes, one)
		}
	}
	if len(s.Deletes) == 0 {
		return bad("No transfers or namespace operations specified")
	}
	return nil
}

// overHTTP reports whether the scheme of a URL is http or https.
func overHTTP(u *url.URL) bool { return u.Scheme == "https" || u.Scheme == "http" }

// jsonText returns the text of an error of package json, without the types of Go.
func jsonText(err error) string {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("%s cannot be a JSON %s", cmp.Or(e.Field, "the request"), e.Value)
	}
	return err.Error()
}

// null reports whether a value is absent, null, or an empty list or object.
func null(v json.RawMessage) bool {
	switch string(bytes.TrimSpace(v)) {
	case "", "null", "[]", "{}":
		return true
	}
	return false
}

// file reads and checks one file.
func (s *Submission) file(text json.RawMessage) (*File, *Error) {
	var in fileKeys
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, bad("%.300s", jsonText(err))
	}
	switch {
	case len(in.Sources) == 0:
		return nil, bad("Missing parameter: 'sources'")
	case len(in.Destinations) == 0:
		return nil, bad("Missing parameter: 'destinations'")
	case len(in.Destinations) > 1:
		return nil, bad("%d destinations: a file has one; submit a file for each destination", len(in.Destinations))
	case len(in.Sources) > maxSources:
		return nil, bad("%d sources: a file has at most %d", len(in.Sources), maxSources)
	case s.Stage > 0 && len(in.Sources) > 1:
		return nil, bad("%d sources: a file that is brought online has one", len(in.Sources))
	}
	f := &File{Size: -1, Checksum: "ADLER32", Activity: "default", Strategy: "auto", Report: s.Report,
		SciTag: s.SciTag, Archiving: s.Archiving}
	for _, step := range []func(*fileKeys) *Error{f.urls, f.tokens, f.labels, f.hints, f.check} {
		if err := step(&in); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// urls sets the sources and the destination of a file.
func (f *File) urls(in *fileKeys) (err *Error) {
	for _, one := range in.Sources {
		u, err := parse(one)
		if err != nil {
			return err
		}
		f.Sources, f.SourceTexts = append(f.Sources, u), append(f.SourceTexts, strings.TrimSpace(one))
	}
	f.DestText = strings.TrimSpace(in.Destinations[0])
	f.Dest, err = parse(in.Destinations[0])
	return err
}

// labels sets the size, the activity, the strategy and the metadata of a file.
func (f *File) labels(in *fileKeys) (err *Error) {
	if in.Filesize != nil {
		n, err := in.Filesize.Float64()
		if err != nil || n < 0 || n > 1<<62 {
			return bad("filesize %.50s: expected a number of bytes", in.Filesize.String())
		}
		if n > 0 { // 0 means unknown, as in FTS
			f.Size = int64(n)
		}
	}
	if in.Activity != nil && *in.Activity != "" {
		f.Activity = *in.Activity
	}
	if len(f.Activity) > 100 || !utf8.ValidString(f.Activity) || strings.ContainsRune(f.Activity, 0) {
		return bad("activity: expected at most 100 bytes of text")
	}
	if in.Strategy != nil && *in.Strategy != "" {
		f.Strategy = *in.Strategy
	}
	for _, v := range []json.RawMessage{in.Metadata, in.FileMetadata} {
		if err == nil && f.Metadata == nil && !null(v) {
			f.Metadata, err = metadata(v, "metadata")
		}
	}
	return err
}

// hints sets the values that are passed on to the endpoints and tape systems of a file.
func (f *File) hints(in *fileKeys) *Error {
	staging, err := object(in.StagingMetadata, "staging_metadata")
	if err != nil {
		return err
	}
	archiving, err := object(in.ArchiveMetadata, "archive_metadata")
	if err != nil {
		return err
	}
	tag, err := sciTag(in.SciTag)
	if err != nil {
		return err
	}
	f.Staging, f.SciTag = staging, cmp.Or(tag, f.SciTag)
	if archiving != nil {
		f.Archiving = archiving
	}
	return nil
}

// tokens sets the tokens of a file.
func (f *File) tokens(in *fileKeys) *Error {
	switch {
	case len(in.SourceTokens) == 0 && len(in.DestinationTokens) == 0:
		return nil
	case len(in.SourceTokens) == 0 || len(in.DestinationTokens) == 0:
		return bad("Both source_tokens and destination_tokens are required if one of them is present.")
	case len(in.SourceTokens) != len(in.Sources):
		return bad("Length of source_tokens should be equal to the length of sources.")
	case len(in.DestinationTokens) != len(in.Destinations):
		return bad("Length of destination_tokens should be equal to the length of destinations.")
	}
	for i, t := range slices.Concat(in.SourceTokens, in.DestinationTokens) {
		u := f.Dest
		if i < len(f.Sources) {
			u = f.Sources[i]
		}
		if err := tokenFor(u, t, false); err != nil {
			return err
		}
	}
	f.SourceTokens, f.DestToken = in.SourceTokens, in.DestinationTokens[0]
	return nil
}

// tokenFor checks the token for a URL.
func tokenFor(u *url.URL, t string, optional bool) *Error {
	switch {
	case t == "" && optional:
		return nil
	case t == "":
		return bad("Token for '%.300s' is missing.", u.Redacted())
	case len(t) > 16<<10 || strings.ContainsFunc(t, func(r rune) bool { return r <= ' ' || r > '~' }):
		return bad("the token for '%.300s' is not one", u.Redacted())
	case u.Scheme == "http":
		return bad("the token for '%.300s' is not sent without TLS: use https or davs", u.Redacted())
	}
	return nil
}

// check checks the strategy and reads the checksum.
func (f *File) check(in *fileKeys) *Error {
	switch f.Strategy {
	case "auto", "orderly", "queue", "success", "throughput", "file-throughput", "pending-data", "waiting-time", "waiting-time-with-error",
		"duration":
	default:
		return bad("%.100q algorithm is not supported by Scheduler", f.Strategy)
	}
	if in.Checksum == nil || *in.Checksum == "" {
		return nil
	}
	f.Checksum = *in.Checksum
	name, value, _ := strings.Cut(f.Checksum, ":")
	kind, known := digest.Lookup(name)
	adler := kind.Name == digest.Adler32().Name
	switch sum, ok := kind.Hex(strings.ToLower(value)); {
	case !known:
		return bad("checksum %.100q: expected ADLER32, CRC32C, MD5 or SHA256, as ALGORITHM:VALUE", f.Checksum)
	case value == "" && adler: // the checksum of the source is used
	case value == "":
		return bad("checksum %.100q: expected %[1]s:VALUE; ADLER32 alone compares both ends", f.Checksum)
	case adler && !ok:
		return bad("checksum %.100q: expected up to 8 hex digits", f.Checksum)
	case !ok || !adler && len(value) != len(sum):
		return bad("checksum %.100q: expected %d hex digits", f.Checksum, 2*kind.Size)
	default:
		f.Adler = kind.Kept(sum)
	}
	return nil
}

// parse parses a URL as FTS does, with davs and dav as other names of https and http, and xroots
// and xroot of roots and root.
func parse(text string) (*url.URL, *Error) {
	text = strings.TrimSpace(text)
	u, err := url.Parse(text)
	if err != nil || !utf8.ValidString(text) || strings.ContainsRune(text, 0) || strings.ContainsRune(text, utf8.RuneError) {
		return nil, bad("Invalid value within the request: a URL cannot be read") // the URL may contain a secret
	}
	if u.User != nil {
		return nil, bad("Invalid value within the request: %.300s: a URL with a user is not accepted: use source_tokens and destination_tokens",
			u.Redacted())
	}
	u.Scheme = canonical(u.Scheme)
	switch {
	case defaultPort(u.Scheme) != "":
	case u.Scheme == "":
		return nil, bad("Invalid value within the request: Missing scheme (%.300s)", text)
	case u.Scheme == "file":
		return nil, bad("Invalid value within the request: Can not transfer local files (%.300s)", text)
	default:
		return nil, bad("Invalid value within the request: scheme %.20s is not supported: use https, davs, root or roots (%.300s)", u.Scheme,
			text)
	}
	switch {
	case len(text) > maxURL:
		return nil, bad("Invalid value within the request: a URL has more than %d bytes", maxURL)
	case host(u) == "":
		return nil, bad("Invalid value within the request: Missing host (%.300s)", text)
	case !possible(u):
		return nil, bad("Invalid value within the request: %.300s cannot be a host with a port up to 65535", u.Host)
	case strings.Trim(u.Path, "/") == "":
		return nil, bad("Invalid value within the request: Missing path (%.300s)", text)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, bad("Invalid value within the request: a URL with ? or # is not supported (%.300s)", strings.TrimSuffix(u.Host+u.Path, "/"))
	case strings.HasSuffix(u.Path, "/"):
		return nil, bad("Invalid value within the request: a folder is no file (%.300s)", text)
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		if part == ".." || part == "." {
			return nil, bad("Invalid value within the request: a path with a part %q is not accepted", part)
		}
	}
	u.Host = Server(u)
	return u, nil
}

// possible reports whether an endpoint can have a URL's host and port: a host whose last label is a
// number must be an IP address.
func possible(u *url.URL) bool {
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return false
		}
	}
	name := strings.TrimSuffix(u.Hostname(), ".")
	last := strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
	_, number := strconv.ParseUint(last, 0, 64)
	if number == nil || strings.HasPrefix(last, "0x") || strings.Contains(name, ":") {
		_, err := netip.ParseAddr(name)
		return err == nil
	}
	return true
}

// metadata returns metadata in the format that FTS stores: an object unchanged, a text t as
// {"label": t}.
func metadata(v json.RawMessage, name string) (json.RawMessage, *Error) {
	if null(v) {
		return v, nil
	}
	if len(v) > maxMetadata {
		return nil, bad("Job Submission Refused, %s exceeds size limit of %d", name, maxMetadata)
	}
	switch v = bytes.TrimSpace(v); v[0] {
	case '{':
		return v, nil
	case '"':
		return slices.Concat([]byte(`{"label":`), []byte(v), []byte("}")), nil
	}
	return nil, bad("%s: Metadata neither JSON nor String", name)
}
