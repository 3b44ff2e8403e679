package mover

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"weir/internal/adler"
	"weir/transfer"
)

const (
	defaultChunk = 64 << 20
	fewChunks    = 16 // of a smaller file: after damage on the way only part of the file is fetched again
	minChunk     = 1 << 20
	noteEvery    = 16 << 20  // bytes between two records of the progress of a chunk
	smallest     = noteEvery // a smaller file has no state file
	slice        = 1 << 20   // bytes that are read back at once: they are still in a cache
)

// A chunk is a part of a file that has its own checksum.
type chunk struct {
	got   int64 // bytes from its start that were written and read back
	sum   uint32
	noted int64
}

// A part is a file under its temporary name.
type part struct {
	m           *Mover
	item, epoch int64
	size        int64
	step        int64 // bytes of a chunk
	file        *os.File
	chunks      []chunk
	resumed     int64

	mu    sync.Mutex
	state *os.File // nil for small files
	from  origin
}

// An origin is the source of a part: an attempt may only resume the part from the same origin.
type origin struct{ site, tag string }

// openPart makes the part of a lease, or resumes the part that an earlier attempt left.
func (m *Mover) openPart(l transfer.Lease) (*part, error) {
	p := &part{m: m, item: l.Item, epoch: l.Epoch, size: l.Size, step: chunkSize(l), from: origin{site: l.Source.Site}}
	p.chunks = make([]chunk, (l.Size+p.step-1)/p.step)
	for i := range p.chunks {
		p.chunks[i].sum = 1
	}
	if err := m.made.note(l.Item, l.Epoch); err != nil {
		return nil, local("note what is being made", err)
	}
	m.mu.Lock()
	before, left := m.kept[l.Item]
	m.kept[l.Item] = l.Epoch // set now, in case the process is ended
	m.mu.Unlock()
	if left && before != l.Epoch && !m.inherit(l.Item, before, l.Epoch) {
		m.made.remove(l.Item, before)
	}
	if err := p.open(); err != nil {
		return nil, err
	}
	if err := p.openState(l); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func chunkSize(l transfer.Lease) int64 {
	if l.Chunk <= 0 {
		return min((l.Size/fewChunks+minChunk)&^(minChunk-1), defaultChunk)
	}
	return max(l.Chunk, minChunk)
}

// inherit renames the part of one epoch to that of another epoch.
func (m *Mover) inherit(item, from, to int64) bool {
	if m.root.Rename(partName(item, from), partName(item, to)) != nil {
		return false
	}
	_ = m.made.state.Rename(stateName(item, from), stateName(item, to)) // without its state the part is not trusted
	return true
}

func (p *part) open() (err error) {
	name := partName(p.item, p.epoch)
	p.file, err = p.m.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
	if errors.Is(err, fs.ErrNotExist) { // the folder was removed
		_ = p.m.root.Mkdir(Hidden, 0o777) // if this fails, the next line returns an error
		p.file, err = p.m.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
	}
	if err != nil {
		return local("make the temporary file "+name, err)
	}
	info, err := p.file.Stat()
	if err == nil && info.Size() > p.size {
		err = p.file.Truncate(0)
	}
	if err == nil {
		err = room(p.file, p.size-min(info.Size(), p.size))
	}
	if err != nil {
		return errors.Join(local("begin the temporary file "+name, err), p.file.Close())
	}
	return nil
}

// openState reads the records of the part, verifies them by reading the part again, and begins a
// new state file.
func (p *part) openState(l transfer.Lease) error {
	name := stateName(p.item, p.epoch)
	if p.size < smallest {
		return nil
	}
	head := fmt.Sprintf("weir-part 1 %d %d %s %q", l.Size, p.step, l.Adler, l.Name)
	if old, err := p.m.made.state.Open(name); err == nil {
		p.read(old, head)
		_ = old.Close() // only read
	}
	fresh, err := p.m.made.state.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return local("note how far a file is", err)
	}
	p.state = fresh
	p.write(head)
	p.write(fmt.Sprintf("from %q %q", p.from.site, p.from.tag))
	for i := range p.chunks {
		if p.chunks[i].got > 0 {
			p.note(i)
		}
	}
	return nil
}

// read takes over the recorded chunks whose checksums match the data of the part. The records may
// be incomplete or wrong.
func (p *part) read(old io.Reader, head string) {
	lines := bufio.NewScanner(old)
	if !lines.Scan() || lines.Text() != head {
		return
	}
	noted := map[int]chunk{}
	var from origin
	for lines.Scan() {
		var i int
		var c chunk
		if n, _ := fmt.Sscanf(lines.Text(), "chunk %d %d %08x.", &i, &c.got, &c.sum); n == 3 && i >= 0 && i < len(p.chunks) &&
			c.got <= p.length(i) && c.got >= 0 {
			noted[i] = c
		}
		_, _ = fmt.Sscanf(lines.Text(), "from %q %q", &from.site, &from.tag) // any other line does not match
	}
	if from.site == p.from.site {
		p.from = from
	}
	buf := p.m.bufs.Get().(*[]byte)
	defer p.m.bufs.Put(buf)
	for i, c := range noted {
		sum, err := sumOf(p.file, int64(i)*p.step, c.got, *buf)
		if err == nil && sum == c.sum {
			p.chunks[i] = chunk{got: c.got, sum: c.sum, noted: c.got}
			p.resumed += c.got
		}
	}
}

// sumOf returns the checksum of n bytes of f, beginning at off.
func sumOf(f io.ReaderAt, off, n int64, buf []byte) (uint32, error) {
	sum := uint32(1)
	for n > 0 {
		m, err := f.ReadAt(buf[:min(n, int64(len(buf)))], off)
		if m == 0 {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		sum = adler.Update(sum, buf[:m])
		off += int64(m)
		n -= int64(m)
	}
	return sum, nil
}

// length returns the number of bytes of chunk i.
func (p *part) length(i int) int64 { return min(p.step, p.size-int64(i)*p.step) }

// readBack adds n bytes at off, which were just written, to the checksum of their chunk: it covers
// the data that the file has, not the data that were sent to it.
func (p *part) readBack(f *os.File, off, n int64, buf []byte) error {
	for n > 0 {
		i := int(off / p.step)
		c := &p.chunks[i]
		m := int(min(n, int64(len(buf)), p.length(i)-c.got))
		if !p.m.opt.Unread {
			var err error
			if m, err = f.ReadAt(buf[:m], off); m == 0 {
				return local("read back what was written", errors.Join(err, io.ErrUnexpectedEOF))
			}
			c.sum = adler.Update(c.sum, buf[:m])
		}
		c.got += int64(m)
		off += int64(m)
		n -= int64(m)
		if c.got-c.noted >= noteEvery || c.got == p.length(i) {
			p.note(i)
		}
	}
	return nil
}

// note records the progress of a chunk.
func (p *part) note(i int) {
	c := &p.chunks[i]
	c.noted = c.got
	p.write(fmt.Sprintf("chunk %d %d %08x.", i, c.got, c.sum))
}

// write adds a line to the state file. If it is lost the next attempt begins anew; the current
// attempt does not need it.
func (p *part) write(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != nil {
		_, _ = p.state.WriteString(line + "\n")
	}
}

// void marks a chunk as empty.
func (p *part) void(i int) {
	p.chunks[i] = chunk{sum: 1}
	p.note(i)
}

// sum returns the checksum of the whole file, from the sums of its chunks.
func (p *part) sum() uint32 {
	sum := uint32(1)
	for i, c := range p.chunks {
		sum = adler.Combine(sum, c.sum, p.length(i))
	}
	return sum
}

// close closes the part and leaves it for the next attempt.
func (p *part) close() error {
	var err error
	if p.state != nil {
		err = p.state.Close()
		p.state = nil
	}
	return errors.Join(err, p.file.Close())
}

// done forgets the part after the file got its name.
func (p *part) done() {
	if p.size >= smallest {
		_ = p.m.made.state.Remove(stateName(p.item, p.epoch)) // a state without its part is ignored
	}
	p.m.mu.Lock()
	delete(p.m.kept, p.item)
	p.m.mu.Unlock()
}

// remove removes the part, so that it is not resumed.
func (p *part) remove() {
	p.m.made.remove(p.item, p.epoch)
	p.done()
}
