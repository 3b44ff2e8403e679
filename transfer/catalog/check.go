package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"weir/storage"
)

// ErrBad is the error for an invalid name, checksum or size.
var ErrBad = errors.New("not valid")

// Limits of names in bytes. An element of a path has at most 255 bytes on the file systems of
// replicas.
const (
	maxName    = 1024
	maxElement = 255
	maxSite    = 64
)

// CheckName returns an error for a name that a file or dataset cannot have at every site. A valid
// name begins with a slash, has elements between single slashes, contains no element . or .., and
// is UTF-8 without control characters or backslashes. The error wraps ErrBad.
func CheckName(name string) error {
	why := ""
	switch {
	case name == "":
		why = "it is empty: names are like /store/run1/f1.root"
	case name[0] != '/':
		why = "it must begin with a slash, as in /store/run1/f1.root"
	case strings.HasSuffix(name, "/"):
		why = "it must not end with a slash"
	case strings.Contains(name, "//"):
		why = "it has two slashes in a row"
	case len(name) > maxName:
		why = fmt.Sprintf("it has %d bytes, at most %d are possible", len(name), maxName)
	case storage.CheckPath(name[1:]) != nil:
		why = "it has an element . or .."
	case strings.Contains(name, "\\"):
		why = "it has a backslash, which some servers take for a slash"
	case name == "/.weir" || strings.HasPrefix(name, "/.weir/"):
		why = "/.weir is where files lie that are still being copied"
	default:
		why = badText(name)
	}
	if why == "" && slices.ContainsFunc(strings.Split(name, "/"), func(e string) bool { return len(e) > maxElement }) {
		why = fmt.Sprintf("one of its elements has more than %d bytes", maxElement)
	}
	return bad("name", name, why)
}

// CheckSite returns an error for a site name that is not up to 64 letters, digits, dots, dashes and
// underscores with a letter or digit first. The error wraps ErrBad.
func CheckSite(name string) error {
	why := ""
	for i, r := range name {
		plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !plain && (i == 0 || !strings.ContainsRune("._-", r)) {
			why = "use letters, digits, dots, dashes and underscores, a letter or digit first"
		}
	}
	if name == "" {
		why = "it is empty"
	}
	if len(name) > maxSite {
		why = fmt.Sprintf("it has %d bytes, at most %d are possible", len(name), maxSite)
	}
	return bad("name of a site", name, why)
}

// checkBlock returns an error for a block name that cannot be shown on one line. "" is a valid
// block name.
func checkBlock(name string) error {
	why := badText(name)
	if len(name) > maxName {
		why = fmt.Sprintf("it has %d bytes, at most %d are possible", len(name), maxName)
	}
	return bad("name of a block", name, why)
}

func badText(text string) string {
	if !utf8.ValidString(text) {
		return "it is not UTF-8"
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		return "it has a control character"
	}
	if strings.ContainsRune(text, utf8.RuneError) { // from half of a surrogate pair in JSON, or a table in another encoding
		return "it has the character U+FFFD, which replaces text that could not be read"
	}
	return ""
}

func bad(what, name, why string) error {
	if why == "" {
		return nil
	}
	if len(name) > 200 {
		name = strings.ToValidUTF8(name[:200], "") + "..."
	}
	return fmt.Errorf("%s %q is %w: %s", what, name, ErrBad, why)
}

// Check returns a file as the catalog stores it: its checksums in lower case, with their leading
// zeros. It returns an error that wraps ErrBad for names that CheckName refuses, for negative
// sizes, and for invalid checksums.
func Check(f File) (File, error) {
	if err := CheckName(f.Name); err != nil {
		return f, err
	}
	if err := checkBlock(f.Block); err != nil {
		return f, err
	}
	if f.Size < 0 {
		return f, bad("size of", f.Name, fmt.Sprintf("it is negative (%d bytes)", f.Size))
	}
	if f.Size > MostBytes {
		return f, bad("size of", f.Name, fmt.Sprintf("it is more than %d bytes (%d)", int64(MostBytes), f.Size))
	}
	var ok bool
	if f.Adler, ok = adlerOf(f.Adler); !ok {
		return f, bad("adler32 of", f.Name, fmt.Sprintf("%q is not up to 8 hexadecimal digits", f.Adler))
	}
	if f.More, ok = moreOf(f.More); !ok {
		return f, bad("checksums of", f.Name, fmt.Sprintf("%q is not like sha256=...,md5=...", f.More))
	}
	return f, nil
}

func adlerOf(text string) (string, bool) {
	if text == "" {
		return "", true
	}
	low := strings.ToLower(strings.TrimSpace(text))
	if low == "" || len(low) > 8 || strings.Trim(low, "0123456789abcdef") != "" {
		return text, false
	}
	return strings.Repeat("0", 8-len(low)) + low, true
}

// moreOf sorts checksums by their names.
func moreOf(text string) (string, bool) {
	if text == "" {
		return "", true
	}
	if len(text) > maxName {
		return text[:40] + "...", false
	}
	var all []string
	for part := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(strings.TrimSpace(part), "=")
		name = strings.ToLower(name)
		if !found || name == "" || value == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" ||
			strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' }) {
			return text, false
		}
		if len(strings.Trim(value, "0123456789abcdefABCDEF")) == 0 {
			value = strings.ToLower(value)
		}
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for i := 1; i < len(all); i++ {
		if name, _, _ := strings.Cut(all[i], "="); strings.HasPrefix(all[i-1], name+"=") {
			return text, false // two values of one name
		}
	}
	return strings.Join(all, ","), true
}

// MostBytes is the limit of the size of a file and of a dataset in bytes: 1 EiB, so that sums of
// sizes do not overflow.
const MostBytes = 1 << 60

// CheckEntry checks the file of an entry with Check, and returns an error for a path that is not
// below the site's root.
func CheckEntry(e Entry) (Entry, error) {
	f, err := Check(e.File)
	if err != nil {
		return e, err
	}
	e.File = f
	if e.Path == f.Name[1:] {
		e.Path = ""
	}
	why := badText(e.Path)
	switch {
	case strings.HasPrefix(e.Path, "/"):
		why = "it begins with a slash: paths are below the site's root"
	case storage.CheckPath(e.Path) != nil:
		why = "it has an element . or .."
	case len(e.Path) > 4*maxName:
		why = "it is too long"
	}
	return e, bad("path", e.Path, why)
}

// Contradicts compares two files of the same name, as Check returns them. It returns the first
// difference that proves that they are not the same file, or "".
func Contradicts(known, said File) string {
	if known.Size != said.Size {
		return fmt.Sprintf("its size is said to be %d bytes, %d are known", said.Size, known.Size)
	}
	if known.Adler != "" && said.Adler != "" && known.Adler != said.Adler {
		return fmt.Sprintf("its adler32 is said to be %s, %s is known", said.Adler, known.Adler)
	}
	sums := map[string]string{}
	for part := range strings.SplitSeq(known.More, ",") {
		name, value, _ := strings.Cut(part, "=")
		sums[name] = value
	}
	for part := range strings.SplitSeq(said.More, ",") {
		name, value, _ := strings.Cut(part, "=")
		if had := sums[name]; had != "" && had != value {
			return fmt.Sprintf("its %s is said to be %s, %s is known", name, value, had)
		}
	}
	return ""
}

// Merged returns the checksums of two lists, as Check returns them, that do not contradict each
// other.
func Merged(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	if all, ok := moreOf(a + "," + b); ok {
		return all
	}
	return a
}
