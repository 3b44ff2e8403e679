package fts

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"weir/transfer/queue"
)

// polled returns the fields of a file that Rucio requests, and the fields that identify it. Their
// values need no map.
func polled() []string {
	return []string{"file_id", "file_index", "file_state", "dest_surl", "start_time", "finish_time", "staging_start", "staging_finished",
		"reason", "file_metadata"}
}

// value returns one of the polled fields of a file.
func value(name string, f *queue.JobFile, k *KeptFile) any {
	switch name {
	case "file_id":
		return f.ID
	case "file_index":
		return f.Number
	case "file_state":
		return StateOf(f)
	case "dest_surl":
		return k.Dest
	case "start_time":
		return Time(f.Began)
	case "finish_time":
		return Time(f.Ended)
	case "reason":
		return orNil(Reason(&f.Item))
	case "file_metadata":
		return metadataOf(f, k)
	case "staging_start", "staging_finished":
		for _, t := range f.Tape {
			if t.Kind == queue.Stage && name == "staging_start" {
				return Time(t.Began)
			} else if t.Kind == queue.Stage {
				return Time(t.Ended)
			}
		}
	}
	return nil
}

// AppendFiles appends fields of the files of a job as a JSON list, with a row for each source of
// each file, as [Files] returns them. It leaves out fields that FTS does not have.
func AppendFiles(b []byte, j *queue.JobState, files []*queue.JobFile, fields []string) ([]byte, error) {
	fields = slices.Compact(slices.Sorted(slices.Values(fields)))
	known := append(polled(), "source_surl")
	simple := !slices.ContainsFunc(fields, func(name string) bool { return !slices.Contains(known, name) })
	b = append(slices.Grow(b, 500*len(files)), '[')
	for i, f := range files {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if simple && len(f.Sources) == 1 {
			b, err = appendPolled(b, f, fields)
		} else {
			b, err = appendRows(b, j, f, fields)
		}
		if err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// appendRows appends the rows of a file, with commas between.
func appendRows(b []byte, j *queue.JobState, f *queue.JobFile, fields []string) ([]byte, error) {
	for i, row := range Files(j, f) {
		some := map[string]any{}
		for _, name := range fields {
			if v, known := row[name]; known {
				some[name] = v
			}
		}
		text, err := json.Marshal(some)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, text...)
	}
	return b, nil
}

// appendPolled appends polled fields of a file with one source.
func appendPolled(b []byte, f *queue.JobFile, fields []string) ([]byte, error) {
	k := readKept(f.Params)
	b = append(b, '{')
	for i, name := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, name)
		b = append(b, ':')
		v := any(nil)
		if name == "source_surl" {
			v = k.source(f, 0)
		} else {
			v = value(name, f, k)
		}
		switch v := v.(type) {
		case nil:
			b = append(b, "null"...)
		case string:
			b = appendString(b, v)
		case json.RawMessage:
			if len(v) == 0 {
				v = json.RawMessage("null")
			}
			b = append(b, v...)
		case int:
			b = strconv.AppendInt(b, int64(v), 10)
		case int64:
			b = strconv.AppendInt(b, v, 10)
		default:
			text, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			b = append(b, text...)
		}
	}
	return append(b, '}'), nil
}

// readKept decodes the parameters that Keep encoded for a file. The metadata is the last field, and
// most of the text: it is not decoded.
func readKept(params string) *KeptFile {
	var k KeptFile
	text, metadata, found := bytes.Cut([]byte(params), []byte(`,"file_metadata":`)) // inside a string the quotes would be escaped
	if found {
		text, k.Metadata = append(text[:len(text):len(text)], '}'), json.RawMessage(metadata[:len(metadata)-1])
	}
	_ = json.Unmarshal(text, &k) // Keep made it
	return &k
}

// source returns a source of a file in the form in which it was submitted.
func (k *KeptFile) source(f *queue.JobFile, i int) string {
	if i < len(k.Sources) {
		return k.Sources[i]
	}
	return f.Sources[i].URL
}

// appendString appends a string in the same format as json.Marshal.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c == 0x7f {
			text, _ := json.Marshal(s) // strings cannot fail
			return append(b, text...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
