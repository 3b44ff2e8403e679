package serve

import (
	"errors"
	"fmt"
	"math"
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
		return Set{}, fmt.Errorf("%q is not a number", count)
	}
	bytes, err := unit.ParseSize(strings.TrimSpace(size))
	if err != nil {
		return Set{}, err
	}
	return Set{Count: int(n), Size: int64(bytes)}, nil
}

// ParseEvents reads "50000x40KiB", one file of so many events of one size, or
// "4x50000x40KiB", so many files: what analysis jobs read in pages. They are
// invented files like all others.
func ParseEvents(text string) (Set, error) {
	set, err := parseEvents(text)
	if err == nil {
		err = checkSets([]Set{set})
	}
	if err != nil {
		return Set{}, fmt.Errorf("events %q: %w: write them as 50000x40KiB, or 4x50000x40KiB for four files", text, err)
	}
	return set, nil
}

func parseEvents(text string) (Set, error) {
	files, rest := "1", text
	if strings.Count(text, "x") > 1 {
		files, rest, _ = strings.Cut(text, "x")
	}
	events, err := parseSet(rest)
	if err != nil {
		return Set{}, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(files), 10, 31)
	switch {
	case err != nil:
		return Set{}, fmt.Errorf("%q is not a number of files", files)
	case events.Count < 1 || events.Size < 1:
		return Set{}, errors.New("a file has at least one event, and an event at least one byte")
	case int64(events.Count) > math.MaxInt64/events.Size:
		return Set{}, errors.New("a file cannot be so large")
	}
	return Set{Count: int(n), Size: int64(events.Count) * events.Size}, nil
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
