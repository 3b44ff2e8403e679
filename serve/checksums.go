package serve

import (
	"context"
	"io"
	"maps"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir/internal/content"
	"weir/internal/digest"
)

// A digestName is a checksum as a request's header names it.
type digestName struct {
	digest.Algorithm
	name string // as in the header, lower case
}

// maxDigests limits the members of a header that are parsed.
const maxDigests = 32

// members splits the values of a header at commas.
func members(values []string) []string {
	var all []string
	for _, v := range values {
		for m := range strings.SplitSeq(v, ",") {
			if m = strings.TrimSpace(m); m != "" && len(all) < maxDigests {
				all = append(all, m)
			}
		}
	}
	return all
}

// wanted returns the checksum of highest preference in a Want-Digest ("adler32;q=1, md5;q=0.5") or
// Want-Repr-Digest ("sha-256=10, md5=3"). Members that are unknown or not understood do not count;
// the result is zero if no known member remains.
func wanted(values []string, mark string, most float64) (best digestName) {
	top := 0.0
	for _, m := range members(values) {
		name, text, given := strings.Cut(m, mark)
		weight := 1.0
		if given {
			weight = preference(text, mark)
		}
		if a, known := digest.Lookup(name); known && weight > top && weight <= most {
			best, top = digestName{a, strings.ToLower(strings.TrimSpace(name))}, weight
		}
	}
	return best
}

// preference reads the preference after a name: "q=0.5" after a semicolon, "5" after an equals
// sign. An invalid preference counts as 0, which means not acceptable.
func preference(text, mark string) float64 {
	if mark == ";" {
		q, value, _ := strings.Cut(text, "=")
		if !strings.EqualFold(strings.TrimSpace(q), "q") {
			return 0
		}
		text = value
	}
	w, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(w) {
		return 0
	}
	return w
}

// requestedSums returns the checksums in a request's headers: RFC 3230's and RFC 9530's.
func requestedSums(h http.Header) (instance, repr digestName) {
	if v := h["Want-Digest"]; v != nil {
		instance = wanted(v, ";", 1)
	}
	if v := h["Want-Repr-Digest"]; v != nil {
		repr = wanted(v, "=", 10)
	}
	return instance, repr
}

// setDigests writes the requested digest headers; sum returns a checksum in package content's form.
func setDigests(h http.Header, instance, repr digestName, sum func(alg string) (string, error)) error {
	for _, one := range []struct {
		header string
		digestName
	}{{"Digest", instance}, {"Repr-Digest", repr}} {
		if one.name == "" {
			continue
		}
		text, err := sum(one.Name)
		if err != nil {
			return err
		}
		_, value, _ := strings.Cut(text, ":")
		if one.header != "Digest" {
			value = ":" + digest.Base64(value) + ":"
		} else if one.Name != adlerName { // which RFC 3230 has in hexadecimal digits
			value = digest.Base64(value)
		}
		h[one.header] = []string{one.name + "=" + value}
	}
	return nil
}

// Stated returns the checksums that an upload's headers contain, in package content's form by
// algorithm. Unknown algorithms are left out; an invalid checksum differs from the checksum of
// every file.
func Stated(h http.Header) map[string]string {
	sums := map[string]string{}
	for _, m := range members(slices.Concat(h["Digest"], h["Repr-Digest"], h["Content-Digest"])) {
		name, value, _ := strings.Cut(m, "=")
		if a, ok := digest.Lookup(name); ok {
			text, ok := a.Hex(value)
			if !ok {
				text = strings.ToLower(value)
			}
			sums[a.Name] = a.Name + ":" + text
		}
	}
	if md5, ok := digest.Lookup("md5"); ok && len(h["Content-Md5"]) > 0 { // RFC 1864
		value := h.Get("Content-Md5")
		text, ok := md5.Hex(value)
		if !ok {
			text = strings.ToLower(value)
		}
		sums[md5.Name] = md5.Name + ":" + text
	}
	return sums
}

// sums caches checksums as long as size and time of a file stay, and computes each once, for any
// number of concurrent requests.
type sums struct {
	turns chan struct{} // one for each that may compute at a time
	mu    sync.Mutex
	known map[sumKey]*sum
}

type sumKey struct{ name, alg string }

// A sum is a checksum, which is being computed until done is closed.
type sum struct {
	size     int64
	step     int64 // bytes of a chunk; 0 if it is of the whole file
	modified time.Time
	done     chan struct{}
	text     string
	err      error
}

const (
	maxSums = 100_000
	// young is the age from which a file's modification time reflects later changes: clocks of file
	// systems have ticks.
	young = 100 * time.Millisecond
)

func newSums() *sums {
	return &sums{turns: make(chan struct{}, runtime.NumCPU()), known: map[sumKey]*sum{}}
}

// get returns the known checksum for key, or computes it: of chunks of step bytes, if step is not
// 0. It leaves the content of f at its start.
func (s *sums) get(ctx context.Context, key sumKey, step int64, f *file) (string, error) {
	for {
		mine := &sum{size: f.size, step: step, modified: f.modified, done: make(chan struct{})}
		e := s.enter(key, mine)
		if e == mine {
			s.compute(ctx, key, mine, f)
			return mine.text, mine.err
		}
		select {
		case <-e.done:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		if e.err == nil {
			return e.text, nil
		} // else the goroutine that computed it gave up: try again
	}
}

// enter returns the entry for key, which is mine if there is no valid entry.
func (s *sums) enter(key sumKey, mine *sum) *sum {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.known[key]; e != nil && e.size == mine.size && e.step == mine.step && e.modified.Equal(mine.modified) {
		return e
	}
	for k := range s.known { // any entry: it is computed again when it is next needed
		if len(s.known) < maxSums {
			break
		}
		delete(s.known, k)
	}
	s.known[key] = mine
	return mine
}

func (s *sums) compute(ctx context.Context, key sumKey, e *sum, f *file) {
	defer close(e.done)
	fresh := time.Since(f.modified) < young
	if e.step > 0 {
		e.text, e.err = s.readChunks(ctx, f, e.step)
	} else {
		e.text, e.err = s.read(ctx, f, key.alg)
	}
	if e.err == nil && !fresh {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[key] == e {
		delete(s.known, key)
	}
}

func (s *sums) read(ctx context.Context, f *file, alg string) (string, error) {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	h, err := content.NewHash(alg)
	if err != nil {
		return "", err
	}
	if _, err := io.CopyBuffer(untilDone{ctx, h}, f.content, make([]byte, copyBytes)); err != nil {
		return "", err
	}
	if _, err := f.content.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	return content.Text(alg, h), nil
}

// remember notes a checksum that was computed on the way.
func (s *sums) remember(name, alg, text string, e entry) {
	mine := &sum{size: e.size, modified: e.modified, done: make(chan struct{}), text: text}
	close(mine.done)
	s.enter(sumKey{name, alg}, mine)
}

// forget drops the checksums of name and, if it is a folder, of all files in it.
func (s *sums) forget(name string, folder bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if folder {
		maps.DeleteFunc(s.known, func(k sumKey, _ *sum) bool { return strings.HasPrefix(k.name, name+"/") })
		return
	}
	for _, alg := range append(content.Algorithms(), chunkAlg) {
		delete(s.known, sumKey{name, alg})
	}
}

// untilDone stops writing when its context ends.
type untilDone struct {
	ctx context.Context
	to  io.Writer
}

// Write implements io.Writer.
func (w untilDone) Write(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.to.Write(p)
}

// addDigests adds the headers that Want-Digest and Want-Repr-Digest request for f.
func (s *Server) addDigests(r *Request, f *file) error {
	instance, repr := requestedSums(r.Header)
	return setDigests(r.w.Header(), instance, repr, func(alg string) (string, error) {
		return s.sums.get(r.Context(), sumKey{r.Name, alg}, 0, f)
	})
}
