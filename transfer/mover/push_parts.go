package mover

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"weir/internal/adler"
	"weir/internal/pause"
	"weir/transfer"
)

const (
	// worthAsking is the size from which the destination is asked whether it keeps parts: a smaller
	// file is soon sent again.
	worthAsking = 4 << 20
	// maxSpans bounds the number of parts of a file that are compared.
	maxSpans = 4096
	// partsClass is the DAV class of an endpoint that keeps parts (transfer/endpoint/parts.go).
	partsClass = "weir-parts"
)

// keepsParts reports whether the destination keeps the received parts of an interrupted push. A
// server that does not support the request does not.
func (p *push) keepsParts(ctx context.Context) bool {
	a, err := p.m.pool.ask(ctx, p.question(http.MethodOptions, p.temp))
	if err != nil {
		return false
	}
	a.close()
	return slices.ContainsFunc(strings.Split(strings.Join(a.Header["Dav"], ","), ","),
		func(c string) bool { return strings.TrimSpace(c) == partsClass })
}

// fill sends the data that the destination lacks, and returns the largest number of bytes that were
// correct there before. After a broken connection it repeats the comparison, as long as fewer bytes
// are missing each time.
func (p *push) fill(ctx context.Context) (most int64, err error) {
	most = -1
	for failed := 0; ; {
		has, err := p.fillOnce(ctx)
		if has > most {
			most, failed = has, 0
		}
		if failed++; err == nil || !broken(err) || ctx.Err() != nil || failed == patience {
			return most, err
		}
		if !pause.For(ctx, time.Duration(50<<failed)*time.Millisecond) {
			return most, context.Cause(ctx)
		}
	}
}

// fillOnce returns the number of bytes that were correct when it began, -1 if unknown.
func (p *push) fillOnce(ctx context.Context) (has int64, err error) {
	lacks, err := p.lacks(ctx)
	if err != nil {
		return -1, err
	}
	has = p.l.Size
	for _, s := range lacks {
		has -= s.to - s.from
	}
	if p.r.moved.Load() == 0 {
		p.out.Resumed = has
	}
	for _, s := range lacks {
		if err := p.put(ctx, s.from, s.to-s.from); err != nil {
			return has, err
		}
	}
	return has, nil
}

// lacks requests that the destination resumes the data left by earlier attempts, and compares the
// checksums of its parts with the checksums of the file at this site.
func (p *push) lacks(ctx context.Context) ([]span, error) {
	step := max(minChunk, (p.l.Size/maxSpans+minChunk)&^(minChunk-1))
	u := *p.temp
	u.RawQuery = fmt.Sprintf("size=%d", step)
	q := p.question(http.MethodPost, &u, "Content-Length", "0")
	q.wait = p.m.digestTime(p.l.Size)
	p.out.Unwritten = false
	a, err := p.m.pool.ask(ctx, q)
	if err != nil {
		return nil, err
	}
	defer a.close()
	if a.StatusCode != http.StatusOK {
		return nil, a.refused("go on with "+p.l.Name, transfer.Transient)
	}
	var got ChunkSums
	if err := json.NewDecoder(io.LimitReader(a.Body, maxSums)).Decode(&got); err != nil || got.Size < 0 || got.Size > 0 &&
		(got.Chunk != step || int64(len(got.Adler)) != (got.Size+step-1)/step) {
		return nil, failf(transfer.Transient, "%s does not tell what it has of %s", p.to.Host, p.l.Name)
	}
	a.left = -1
	return p.compare(ctx, got, step)
}

// compare returns the spans that are missing or different at the destination.
func (p *push) compare(ctx context.Context, got ChunkSums, step int64) (lacks []span, err error) {
	buf := p.m.bufs.Get().(*[]byte)
	defer p.m.bufs.Put(buf)
	for off := int64(0); off < p.l.Size; off += step {
		n := min(step, p.l.Size-off)
		same := int64(0)
		if i := off / step; i < int64(len(got.Adler)) {
			same = min(n, got.Size-off)
			mine, err := sumOf(p.file, off, same, *buf)
			if err != nil {
				return nil, failf(transfer.SourceBad, "%s became shorter while it was read", p.l.Source.Path)
			}
			if theirs, err := adler.Parse(got.Adler[i]); err != nil || theirs != mine {
				same = 0
			}
			p.r.alive()
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if last := len(lacks) - 1; same == n {
			continue
		} else if last >= 0 && same == 0 && lacks[last].to == off {
			lacks[last].to += n
		} else {
			lacks = append(lacks, span{off + same, off + n})
		}
	}
	return lacks, nil
}
