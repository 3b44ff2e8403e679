package serve

import (
	"fmt"
	"strconv"
	"strings"

	"weir/internal/unit"
)

// A Set is a number of invented files of one size.
type Set struct {
	Count int
	Size  int64 // bytes
}

// maxInvented bounds the invented files, so that a listing stays possible.
const maxInvented = 10_000_000

// ParseSynthetic reads "1000x1MiB", or several of them with commas between:
// "1000x1MiB,2x10GiB". The files are called /file000000.dat and so on, in the
// order given.
func ParseSynthetic(text string) ([]Set, error) {
	var sets []Set
	for part := range strings.SplitSeq(text, ",") {
		set, err := parseSet(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("synthetic files %q: %w: write them as 1000x1MiB", text, err)
		}
		sets = append(sets, set)
	}
	if err := checkSets(sets); err != nil {
		return nil, fmt.Errorf("synthetic files %q: %w", text, err)
	}
	return sets, nil
}

func parseSet(text string) (Set, error) {
	count, size, ok := strings.Cut(text, "x")
	if !ok {
		return Set{}, fmt.Errorf("%q has no x between count and size", text)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(count), 10, 31)
	if err != nil {
		return Set{}, fmt.Errorf("%q is not a number of files", count)
	}
	bytes, err := unit.ParseSize(strings.TrimSpace(size))
	if err != nil {
		return Set{}, err
	}
	return Set{Count: int(n), Size: int64(bytes)}, nil
}

func checkSets(sets []Set) error {
	total := 0
	for _, s := range sets {
		if s.Count < 1 || s.Size < 0 {
			return fmt.Errorf("%d files of %d bytes: at least 1 file of at least 0 bytes", s.Count, s.Size)
		}
		if total += s.Count; s.Count > maxInvented || total > maxInvented {
			return fmt.Errorf("more than %d files", maxInvented)
		}
	}
	return nil
}

// inventedName returns the name of the i-th invented file.
func inventedName(i int) string { return fmt.Sprintf("file%06d.dat", i) }

// inventedIndex is the inverse of inventedName.
func inventedIndex(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, "file")
	if !ok {
		return 0, false
	}
	digits, ok = strings.CutSuffix(digits, ".dat")
	if !ok || len(digits) < 6 || len(digits) > 9 || len(digits) > 6 && digits[0] == '0' {
		return 0, false
	}
	i, err := strconv.ParseUint(digits, 10, 31)
	return int(i), err == nil
}
