package fts

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Params are the parameters of a submission that apply to all its files.
type Params struct {
	Verify    string // "both", "target", "source", "none"; "" in the JSON: see checksums
	Replace   bool   // overwrite
	OnRetry   bool   // overwrite_on_retry: attempts of weir leave nothing under the final name, so there is nothing to overwrite
	Reuse     bool   // connections are reused anyway
	Priority  int    // 1 to 5, 5 first
	Retry     int    // 0: the default, less than 0: no retries
	Timeout   time.Duration
	InQueue   time.Duration // max_time_in_queue; 0: any time
	Streams   int
	Metadata  json.RawMessage // job_metadata; nil: no metadata
	SID       string          // with id_generator deterministic
	Unmanaged bool            // unmanaged_tokens: the tokens of files are not renewed
	Delay     time.Duration   // retry_delay; 0: weir decides
	Strict    bool            // strict_copy: only the size is compared
	Stage     time.Duration   // bring_online; 0: sources are on disk
	Pin       time.Duration   // copy_pin_lifetime; 0: the tape system decides
	Archive   time.Duration   // archive_timeout; 0: files end when they have arrived
	Hops      bool            // multihop: each file comes from the destination of the previous file
	OnHop     bool            // overwrite_hop: only intermediate copies are replaced
	Report    bool            // dst_file_report: an existing file at the destination is described in file_metadata
	SciTag    int             // scitag, of files without one; 0: no tag
	Archiving json.RawMessage // archive_metadata, of files without any; nil: no metadata
	unstated  bool            // verify_checksum was false, or absent
}

// read reads params.
func (p *Params) read(in map[string]json.RawMessage) error {
	p.Priority, p.unstated = 3, true
	generator, sid := "standard", ""
	for _, name := range slices.Sorted(maps.Keys(in)) {
		v := bytes.TrimSpace(in[name])
		if len(v) == 0 || string(v) == "null" {
			continue // the default
		}
		err := p.one(name, v, &generator, &sid)
		if err != nil {
			return err
		}
	}
	switch {
	case generator == "deterministic" && sid == "":
		return bad("id_generator deterministic requires sid")
	case generator == "deterministic":
		p.SID = sid
	case generator != "standard":
		return bad("Invalid value for id_generator: %.50q: use standard or deterministic", generator)
	case sid != "":
		return bad("sid is given without id_generator deterministic")
	}
	if p.Pin > 0 && p.Stage == 0 {
		p.Stage = defaultStage
	}
	if p.Replace && p.OnRetry || p.OnHop && (p.Replace || p.OnRetry) {
		return bad("Incompatible overwrite flags used at the same time")
	}
	if p.OnHop && !p.Hops {
		return bad("'overwrite-hop' requires multihop job submission")
	}
	return nil
}

// one reads one parameter that is not null.
func (p *Params) one(name string, v json.RawMessage, generator, sid *string) (err error) {
	if why, refused := unsupported()[name]; refused {
		if off(v) {
			return nil
		}
		return bad("%s: %s", name, why)
	}
	var ignored bool
	for known, to := range map[string]*bool{
		"overwrite": &p.Replace, "overwrite_on_retry": &p.OnRetry, "reuse": &p.Reuse, "unmanaged_tokens": &p.Unmanaged,
		"strict_copy": &p.Strict, "multihop": &p.Hops, "overwrite_hop": &p.OnHop, "dst_file_report": &p.Report,
		"s3alternate": &ignored, // of S3, which is refused by its URLs
	} {
		if name == known {
			*to, err = flag(name, v)
			return err
		}
	}
	var n int64
	switch name {
	case "verify_checksum":
		return p.verify(v)
	case "priority":
		n, err = number(name, v, -1<<31, 1<<31)
		p.Priority = int(min(max(n, 1), 5))
	case "retry":
		n, err = number(name, v, -1<<31, 99)
		p.Retry = int(max(n, -1))
	case "timeout":
		n, err = number(name, v, 0, 1<<31)
		p.Timeout = time.Duration(n) * time.Second
	case "retry_delay", "bring_online", "copy_pin_lifetime", "archive_timeout":
		return p.seconds(name, v)
	case "nostreams":
		n, err = number(name, v, 0, 100)
		p.Streams = int(n)
	case "max_time_in_queue":
		p.InQueue, err = span(name, v)
	case "job_metadata", "archive_metadata", "scitag":
		return p.metadata(name, v)
	case "id_generator":
		*generator, err = text(name, v)
	case "sid":
		*sid, err = text(name, v)
	case "account": // of Rucio
		_, err = text(name, v)
	default:
		return bad("parameter %.50q is not known", name)
	}
	return err
}

// seconds reads a parameter in seconds, which is off if it is not above 0.
func (p *Params) seconds(name string, v json.RawMessage) error {
	n, err := number(name, v, -1<<31, 365*24*3600)
	*map[string]*time.Duration{"retry_delay": &p.Delay, "bring_online": &p.Stage, "copy_pin_lifetime": &p.Pin,
		"archive_timeout": &p.Archive}[name] = time.Duration(max(n, 0)) * time.Second
	return err
}

// defaultStage is the time limit for bringing files online if only copy_pin_lifetime is set, as in
// FTS.
const defaultStage = 8 * time.Hour

func (p *Params) metadata(name string, v json.RawMessage) error {
	var err *Error
	switch name {
	case "scitag":
		p.SciTag, err = sciTag(v)
	case "archive_metadata":
		p.Archiving, err = object(v, name)
	default:
		p.Metadata, err = metadata(v, name)
	}
	if err != nil {
		return err
	}
	return nil
}

// unsupported returns the parameters that have to be off, with the reasons.
func unsupported() map[string]string {
	const tape = "weir does not decide by what is on tape"
	const gridftp = "GridFTP and SRM are not supported"
	return map[string]string{
		"fail_nearline": tape, "overwrite_when_only_on_disk": tape,
		"staging_metadata": "it belongs to files",
		"gridftp":          gridftp, "spacetoken": gridftp, "source_spacetoken": gridftp, "destination_spacetoken": gridftp,
		"buffer_size":     "the buffers of a copy belong to the endpoints",
		"disable_cleanup": "weir removes its temporary files, and nothing else",
		"ipv4":            "the endpoints choose", "ipv6": "the endpoints choose",
		"credential": "cloud storage is not supported", "credentials": "cloud storage is not supported",
		"user_credentials": "cloud storage is not supported", "target_qos": "QoS is not supported",
	}
}

// off reports whether a value turns a parameter off: false, a number that is not above 0, or an
// empty value.
func off(v json.RawMessage) bool {
	switch string(v) {
	case "false", `""`, `"N"`, "[]", "{}":
		return true
	}
	n, err := strconv.ParseFloat(strings.Trim(string(v), `"`), 64)
	return err == nil && n <= 0
}

// flag reads a flag as FTS does: true, a number other than 0, or a text that begins with Y.
func flag(name string, v json.RawMessage) (bool, error) {
	switch {
	case string(v) == "true":
		return true, nil
	case string(v) == "false", string(v) == "0", string(v) == `""`:
		return false, nil
	case v[0] == '"':
		return strings.EqualFold(string(v[1]), "y"), nil
	}
	if _, err := strconv.ParseFloat(string(v), 64); err != nil {
		return false, bad("%s: expected true or false", name)
	}
	return true, nil
}

func number(name string, v json.RawMessage, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(strings.Trim(string(v), `"`), 10, 64)
	if err != nil || n < least || n > most {
		return 0, bad("%s: expected an integer from %d to %d", name, least, most)
	}
	return n, nil
}

func text(name string, v json.RawMessage) (s string, err error) {
	if json.Unmarshal(v, &s) != nil || len(s) > 1000 || strings.ContainsRune(s, 0) {
		return "", bad("%s: expected a text of at most 1000 bytes", name)
	}
	return s, nil
}

// sciTag parses the label of a flow: 10 bits are the experiment and 6 the activity. 0: there is no
// label.
func sciTag(v json.RawMessage) (int, *Error) {
	if null(v) {
		return 0, nil
	}
	tag, err := strconv.Atoi(string(bytes.TrimSpace(v)))
	if err != nil || tag < 65 || tag > 65535 {
		return 0, bad("Invalid SciTag value: %.50s: expected an integer from 65 to 65535", v)
	}
	return tag, nil
}

// object reads metadata that must be an object. It returns nil if there are no metadata.
func object(v json.RawMessage, name string) (json.RawMessage, *Error) {
	if null(v) {
		return nil, nil
	}
	if bytes.TrimSpace(v)[0] != '{' {
		return nil, bad("%s: expected an object", name)
	}
	return metadata(v, name)
}

// span parses a duration as FTS does: hours, or a text with the unit s, m, h or d.
func span(name string, v json.RawMessage) (time.Duration, error) {
	unit := time.Hour
	digits := strings.ToLower(strings.Trim(string(v), `"`))
	if v[0] == '"' && digits != "" {
		known := false
		unit, known = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[digits[len(digits)-1]]
		if digits = digits[:len(digits)-1]; !known {
			return 0, bad("%s: expected hours, or a text such as 30m, 12h or 7d", name)
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > 100*365*24*3600 {
		return 0, bad("%s: expected hours, or a text such as 30m, 12h or 7d", name)
	}
	return time.Duration(min(n, int64(100*365*24*time.Hour/unit))) * unit, nil
}

// verify reads verify_checksum.
func (p *Params) verify(v json.RawMessage) error {
	switch string(v) {
	case "true":
		p.Verify, p.unstated = "both", false
		return nil
	case "false":
		return nil
	}
	var s string
	_ = json.Unmarshal(v, &s) // "" is refused below
	for _, known := range []string{"both", "target", "source", "none"} {
		if s != "" && (s == known || s == known[:1]) {
			p.Verify, p.unstated = known, false
			return nil
		}
	}
	return bad("verify_checksum: expected both, target, source or none")
}

// checksums sets the default of Verify if the submission does not set it, as FTS does: the target
// is verified if files have checksums.
func (s *Submission) checksums() error {
	if s.unstated {
		s.Verify = "none"
		for _, f := range s.Files {
			if f.Adler != "" {
				s.Verify = "target"
			}
		}
	}
	if s.Strict {
		s.Verify = "none"
	}
	for i := range s.Files {
		if s.Verify == "none" {
			s.Files[i].Adler = ""
		} else if s.Verify == "source" && s.Files[i].Adler == "" {
			return Refuse(http.StatusBadRequest, "file %d: verify_checksum source requires a checksum, such as ADLER32:VALUE", i)
		}
	}
	return nil
}
