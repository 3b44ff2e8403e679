package mover

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"weir/transfer"
)

var (
	errWhole   = errors.New("the source gives no parts of files")
	errChanged = errors.New("the file changed at the source")
)

// stream fetches spans of the queue, one after the other, over one connection. more starts the
// other streams; others is true if there may be any.
func (p *pull) stream(ctx context.Context, others bool, more func()) error {
	file := p.part.file
	if others { // the other streams also write: each needs a position of its own
		f, err := p.m.root.OpenFile(partName(p.l.Item, p.l.Epoch), os.O_RDWR, 0)
		if err != nil {
			return local("open the temporary file", err)
		}
		defer f.Close()
		file = f
	}
	buf := p.m.bufs.Get().(*[]byte)
	defer p.m.bufs.Put(buf)
	for s, ok := p.queue.take(); ok; s, ok = p.queue.take() {
		for s.from < s.to {
			before := s.from
			err := p.span(ctx, file, *buf, &s, more)
			if err != nil && !p.again(ctx, s.from-before, err) {
				return err
			}
		}
	}
	return nil
}

// span fetches the bytes of s, and advances its start as they are read back.
func (p *pull) span(ctx context.Context, file *os.File, buf []byte, s *span, more func()) error {
	a, err := p.open(ctx, *s)
	if err != nil {
		return err
	}
	defer a.close()
	if !near(a.conn) {
		more()
	}
	a.raw = a.conn.plain != nil && a.left >= 0
	t := &taker{answer: a, ctx: ctx, file: file, buf: buf}
	for s.from < s.to {
		end := min((s.from/p.part.step+1)*p.part.step, s.to, s.from+int64(max(slice, len(buf))))
		n, err := t.take(s.from, end-s.from)
		p.r.add(n)
		p.m.moved.Add(n)
		if backErr := p.part.readBack(file, s.from, n, buf); backErr != nil {
			return backErr
		}
		s.from += n
		if err != nil {
			return fmt.Errorf("read %s: %w", shown(a.from), err)
		}
		if n == 0 || a.left == 0 {
			break // the server sent less than requested; the next request continues
		}
	}
	return p.longer(a, *s)
}

// longer detects a body of unknown length that continues after the end of the file.
func (p *pull) longer(a *answer, s span) error {
	if a.left >= 0 || s.from < p.l.Size {
		return nil
	}
	if n, _ := a.Body.Read(make([]byte, 1)); n > 0 {
		return failf(transfer.SourceBad, "%s has more than the %d bytes of the catalog", shown(p.url), p.l.Size)
	}
	a.left = 0
	return nil
}

// open requests the bytes of s, and checks that the response contains them.
func (p *pull) open(ctx context.Context, s span) (*answer, error) {
	all := s.from == 0 && s.to == p.l.Size
	if p.whole && s.from > 0 { // a source without ranges broke off: it can only send from the start
		return nil, errWhole
	}
	q := question{method: http.MethodGet, url: p.url, token: p.l.Source.Token, pin: p.l.Source.Pin, others: p.l.Source.Servers,
		header: p.header(s, all), wait: p.headTime()}
	if slices.Contains(q.header, wantDigest()[0]) {
		answered, err := p.m.sums.Turn(ctx, p.url.Host, p.l.Size)
		if err != nil {
			return nil, err
		}
		defer answered()
	}
	a, err := p.m.pool.ask(ctx, q)
	if err != nil {
		return nil, err
	}
	if err := p.check(a, s, all); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// header returns the headers of a request for s. A range is only accepted from the version of the
// file that was found first.
func (p *pull) header(s span, all bool) []string {
	var h []string
	if !all {
		h = append(h, "Range", fmt.Sprintf("bytes=%d-%d", s.from, s.to-1))
		if tag := p.version(); strings.HasPrefix(tag, `"`) {
			h = append(h, "If-Range", tag)
		}
	}
	if _, known := p.need(); !known && p.l.Size <= inline {
		h = append(h, wantDigest()...)
	}
	return h
}

// check checks whether a response is the requested part of the file.
func (p *pull) check(a *answer, s span, all bool) error {
	switch {
	case a.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return failf(transfer.SourceBad, "%s is shorter than the %d bytes of the catalog", shown(p.url), p.l.Size)
	case a.StatusCode == http.StatusPreconditionFailed:
		return errChanged
	case a.StatusCode != http.StatusOK && a.StatusCode != http.StatusPartialContent:
		return a.refused("read "+p.l.Name, transfer.SourceBad)
	case a.Header.Get("Content-Encoding") != "" && a.Header.Get("Content-Encoding") != "identity":
		return failf(transfer.Permanent, "%s sends the file packed", shown(p.url))
	}
	if err := p.sameVersion(a.Header); err != nil {
		return err
	}
	p.hear(a.Header)
	if a.StatusCode == http.StatusOK {
		if a.left >= 0 && a.left != p.l.Size {
			return p.wrongSize(a.left)
		}
		if !all {
			return errWhole
		}
		return nil
	}
	from, total, err := contentRange(a.Header.Get("Content-Range"))
	switch {
	case err != nil:
		return failf(transfer.Permanent, "%s: %w", shown(p.url), err)
	case total >= 0 && total != p.l.Size:
		return p.wrongSize(total)
	case from != s.from || a.left > s.to-s.from:
		return failf(transfer.Permanent, "%s answers with other bytes than those that were asked for", shown(p.url))
	}
	return nil
}

// contentRange reads "bytes 0-9/10" (RFC 9110, section 14.4). total is -1 if it is unknown.
func contentRange(text string) (from, total int64, err error) {
	rest, ok := strings.CutPrefix(text, "bytes ")
	span, size, ok2 := strings.Cut(rest, "/")
	first, last, ok3 := strings.Cut(span, "-")
	from, err = strconv.ParseInt(first, 10, 64)
	to, err2 := strconv.ParseInt(last, 10, 64)
	total = -1
	var err3 error
	if size != "*" {
		total, err3 = strconv.ParseInt(size, 10, 64)
	}
	if !ok || !ok2 || !ok3 || err != nil || err2 != nil || err3 != nil || from < 0 || to < from || to == math.MaxInt64 {
		return 0, 0, fmt.Errorf("%.60q is no Content-Range", text)
	}
	return from, total, nil
}

// hear stores a checksum that came with a file. That of XRootD may belong to another file, see
// askHead.
func (p *pull) hear(h http.Header) {
	if reported := digestOf(h); reported.known && !isXRootD(h) {
		p.mu.Lock()
		p.sourceSum, p.asked = reported, true
		p.mu.Unlock()
	}
}

func (p *pull) version() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tag
}

// sameVersion returns errChanged if the file is not the version that was found first. It compares
// the tag, or the modification time if there is no tag.
func (p *pull) sameVersion(h http.Header) error {
	tag := h.Get("Etag")
	if tag == "" {
		tag = h.Get("Last-Modified")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case tag == "" || tag == p.tag:
		return nil
	case p.tag != "":
		return errChanged
	}
	p.tag = tag
	p.part.write(fmt.Sprintf("from %q %q", p.l.Source.Site, tag))
	return nil
}
