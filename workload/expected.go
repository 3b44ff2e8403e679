package workload

import (
	"io"

	"weir/internal/content"
	"weir/storage"
)

// Expected returns the checksum "algorithm:hex" that a right answer to op
// about f has: of the whole file, or of op's ranges one after the other, as
// far as the file goes. ok is false if nobody can know it: f was not made by
// the run, op is no Read or Checksum, or alg is unknown.
//
// It makes the content to sum it, so it costs what summing the payload costs.
func Expected(f File, op *storage.Op, alg string) (sum string, ok bool) {
	if !f.Made || f.Size < 0 || op.Kind != storage.Read && op.Kind != storage.Checksum {
		return "", false
	}
	ranges := op.Ranges
	if op.Kind == storage.Checksum || ranges == nil {
		ranges = []storage.Range{{Length: f.Size}}
	}
	h, err := content.NewHash(alg)
	if err != nil {
		return "", false
	}
	for _, r := range ranges {
		if r.Offset < 0 || r.Offset >= f.Size || r.Length <= 0 {
			continue
		}
		part := content.NewReader(f.Seed, r.Offset+min(r.Length, f.Size-r.Offset))
		if _, err := part.Seek(r.Offset, io.SeekStart); err != nil {
			return "", false
		}
		if _, err := part.WriteTo(h); err != nil {
			return "", false
		}
	}
	return content.Text(alg, h), true
}
