package serve

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"weir/internal/adler"
)

// chunksPath is the prefix of the file's name in a request for checksums of chunks: GET
// /.weir/chunks/PATH?size=BYTES. With these checksums the owner of a damaged copy finds the wrong
// parts, and fetches only these again.
const chunksPath = ".weir/chunks/"

const (
	minChunk  = 1 << 20 // bytes
	maxChunks = 1 << 20 // of a file
	chunkAlg  = "chunks"
	adlerName = "adler32"
)

// chunkSums is the answer.
type chunkSums struct {
	Size  int64    `json:"size_bytes"`
	Chunk int64    `json:"chunk_bytes"`
	Adler []string `json:"adler32"` // of each chunk, 8 digits
}

// SendChunks responds with the checksums of the chunks of the file that r names, as GET of
// chunksPath does. The size of a file that does not exist is 0.
func (r *Request) SendChunks() {
	f, err := r.s.tree.open(r.Name)
	if errors.Is(err, fs.ErrNotExist) {
		r.w.Header().Set("Content-Type", "application/json")
		r.broken(json.NewEncoder(r.Text()).Encode(chunkSums{Adler: []string{}}))
		return
	}
	if err == nil && f.dir {
		err = errors.Join(ErrIsFolder, f.Close())
	}
	if err != nil {
		r.FailWith(err)
		return
	}
	defer f.Close()
	r.s.getChunks(r, f)
}

// getChunks sends the checksums of f's chunks.
func (s *Server) getChunks(r *Request, f *file) {
	step, err := strconv.ParseInt(r.URL.Query().Get("size"), 10, 64)
	if err != nil || step < minChunk {
		r.Fail(http.StatusBadRequest, "size= is the number of bytes of a chunk, at least "+strconv.Itoa(minChunk))
		return
	}
	if f.size/step >= maxChunks {
		r.Fail(http.StatusBadRequest, "too many chunks: ask for larger ones")
		return
	}
	text, err := s.sums.get(r.Context(), sumKey{r.Name, chunkAlg}, step, f)
	if err != nil {
		r.FailWith(err)
		return
	}
	h := r.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Etag", f.etag())
	sums := chunkSums{Size: f.size, Chunk: step, Adler: make([]string, 0, len(text)/8)}
	for ; len(text) >= 8; text = text[8:] {
		sums.Adler = append(sums.Adler, text[:8])
	}
	r.broken(json.NewEncoder(r.Text()).Encode(sums))
}

// readChunks computes the checksums of f's chunks, several at a time, and
// returns their digits one behind the other.
func (s *sums) readChunks(ctx context.Context, f *file, step int64) (string, error) {
	from, ok := f.content.(io.ReaderAt)
	if !ok {
		return "", errors.New("this file cannot be read in parts")
	}
	n := int((f.size + step - 1) / step)
	digits := make([]byte, 8*n)
	var next atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, min(n, runtime.NumCPU()))
	for w := range errs {
		all.Go(func() {
			buf := make([]byte, copyBytes)
			for i := next.Add(1) - 1; i < int64(n) && errs[w] == nil; i = next.Add(1) - 1 {
				off := i * step
				var sum uint32
				sum, errs[w] = s.readChunk(ctx, from, off, min(step, f.size-off), buf)
				copy(digits[8*i:], adler.Text(sum))
			}
		})
	}
	all.Wait()
	return string(digits), errors.Join(errs...)
}

// readChunk computes one, when it is its turn among all that are computed.
func (s *sums) readChunk(ctx context.Context, from io.ReaderAt, off, n int64, buf []byte) (uint32, error) {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	sum := uint32(1)
	for n > 0 {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		m, err := from.ReadAt(buf[:min(n, int64(len(buf)))], off)
		if m == 0 {
			return 0, errors.Join(io.ErrUnexpectedEOF, err)
		}
		sum = adler.Update(sum, buf[:m])
		off, n = off+int64(m), n-int64(m)
	}
	return sum, nil
}
