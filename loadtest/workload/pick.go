package workload

import (
	"math/rand/v2"

	"weir/storage"
)

// parts turns picked files into reads of whole files or of ranges.
type parts struct {
	size    int64 // 0: whole files
	count   int64
	inOrder bool
	ranges  []storage.Range // reused: an Op's Ranges are valid until the next task
	file    *File           // in order: the file being walked through
	at      int64           // in order: start of the next range
}

func newParts(p *Part) parts {
	if p == nil {
		return parts{}
	}
	n := max(p.Count, 1)
	return parts{size: int64(p.Size), count: int64(n), inOrder: p.Order == "sequential", ranges: make([]storage.Range, 0, n)}
}

// next picks the file of the next read and sets op's ranges.
func (p *parts) next(r *rand.Rand, files []File, pick *picker, op *storage.Op) *File {
	if p.size > 0 && p.inOrder {
		return p.walk(r, files, pick, op)
	}
	f := &files[pick.next(r)]
	if p.size > 0 && f.Size != 0 { // an empty file has no part: it is read whole
		p.scatter(r, f.Size)
		op.Ranges = p.ranges
	}
	return f
}

// walk continues at the end of the previous task, and with the next file at the end of a file. The
// last range of a file ends with it.
func (p *parts) walk(r *rand.Rand, files []File, pick *picker, op *storage.Op) *File {
	if p.file == nil || p.at >= p.file.Size {
		p.file, p.at = &files[pick.next(r)], 0
	}
	f := p.file
	p.ranges = p.ranges[:0]
	if f.Size < 0 {
		p.unknown()
	}
	for int64(len(p.ranges)) < p.count && p.at < f.Size {
		n := min(p.size, f.Size-p.at)
		p.ranges = append(p.ranges, storage.Range{Offset: p.at, Length: n})
		p.at += n
	}
	if len(p.ranges) > 0 {
		op.Ranges = p.ranges
	}
	return f
}

// scatter draws one range in each of count equal stretches of the file, so that ranges ascend and
// never overlap, as in vector reads of real analyses and as servers demand of a request with many
// ranges. A file too small for count ranges gets fewer ranges; a file smaller than a range is read
// whole.
func (p *parts) scatter(r *rand.Rand, size int64) {
	p.ranges = p.ranges[:0]
	if size < 0 {
		p.unknown()
		return
	}
	if size < p.size {
		p.ranges = append(p.ranges, storage.Range{Length: size})
		return
	}
	n := min(p.count, size/p.size)
	stretch := size / n
	for k := range n {
		at := k*stretch + r.Int64N(stretch-p.size+1)
		p.ranges = append(p.ranges, storage.Range{Offset: at, Length: p.size})
	}
}

// unknown requests a range that every driver refuses: the positions of the parts of a file depend
// on its size, and any other range could pass for a part. Enough keeps such files out of a run.
func (p *parts) unknown() { p.ranges = append(p.ranges, storage.Range{Length: -1}) }

// A picker chooses files of a set of n.
type picker struct {
	n, at int
	order string
	skew  float64
	zipf  *rand.Zipf
	of    *rand.Rand // random source of zipf
}

func newPicker(w Work, n, client int) picker {
	p := picker{n: n, order: w.Pick, skew: w.Skew}
	if n > 0 {
		p.at = client % n // clients start one file apart, so together they cover the set evenly
	}
	return p
}

// next returns the index of the next file. With zipf, all clients choose the first file of the set
// most often.
func (p *picker) next(r *rand.Rand) int {
	switch p.order {
	case "sequential":
		i := p.at
		if p.at++; p.at == p.n {
			p.at = 0
		}
		return i
	case "zipf":
		if p.of != r {
			p.zipf, p.of = rand.NewZipf(r, p.skew, 1, uint64(p.n-1)), r
		}
		return int(p.zipf.Uint64())
	}
	return r.IntN(p.n)
}
