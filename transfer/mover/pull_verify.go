package mover

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"weir/internal/adler"
	"weir/transfer"
)

// headTime returns the time that the source may take to begin a response: it may read the file for
// its checksum first.
func (p *pull) headTime() time.Duration { return p.m.digestTime(min(p.l.Size, inline)) }

// rounds is the number of times that bad chunks are fetched, or sent, again without becoming fewer.
const rounds = 3

// verify compares the checksum of the data read back with the expected checksum. If they differ, it
// determines the cause, and fetches the bad chunks again.
func (p *pull) verify(ctx context.Context) error {
	p.r.stage(transfer.Verifying)
	want, err := p.wanted(ctx)
	if err != nil {
		return err
	}
	if !want.known || p.m.opt.Unread { // the lease allows it
		return nil
	}
	for p.vain = 0; p.part.sum() != want.value; p.vain++ {
		if p.vain == rounds {
			return p.differs(want, transfer.Checksum, "after fetching bad parts again")
		}
		p.r.stage(transfer.Moving)
		if err := p.repair(ctx, want); err != nil {
			return err
		}
	}
	p.out.Verified = true
	return nil
}

func (p *pull) differs(want sum, fault transfer.ErrorClass, more string) error {
	return failf(fault, "%s: adler32 is %s, not %s: %s", p.l.Name, adler.Text(p.part.sum()), adler.Text(want.value), more)
}

// repair fetches the data that differ from the source again. A weir endpoint provides the checksums
// of chunks; from other sources the whole file is fetched again, to compare the two results.
func (p *pull) repair(ctx context.Context, want sum) error {
	sums, err := p.chunkSums(ctx)
	if err != nil {
		return err
	}
	if sums != nil {
		return p.refetch(ctx, want, sums)
	}
	if s := catalogSum(p.l); s.known { // otherwise the source's was just compared
		if reported, err := p.askSource(ctx); err == nil && reported.known && reported.value != want.value {
			return p.spoiled(reported.value, want)
		}
	}
	before := p.part.sum()
	p.queue.reset(p.part)
	p.out.Resumed = 0
	if err := p.fetch(ctx); err != nil {
		return err
	}
	switch p.part.sum() {
	case want.value:
		return nil
	case before:
		return p.differs(want, transfer.SourceBad, "twice the same from "+p.url.Host)
	}
	return p.differs(want, transfer.Checksum, "another one each time from "+p.url.Host)
}

func (p *pull) spoiled(has uint32, want sum) error {
	return failf(transfer.SourceBad, "%s is spoiled: its adler32 at %s is %s, not %s", p.l.Name, p.url.Host, adler.Text(has),
		adler.Text(want.value))
}

// refetch fetches the chunks whose checksums differ from the source.
func (p *pull) refetch(ctx context.Context, want sum, sums []uint32) error {
	all, bad := uint32(1), 0
	for i, s := range sums {
		all = adler.Combine(all, s, p.part.length(i))
		if p.part.chunks[i].sum != s {
			p.part.void(i)
			bad++
		}
	}
	if all != want.value {
		return p.spoiled(all, want)
	}
	if p.bad == 0 || bad < p.bad {
		p.vain = 0
	}
	p.bad = bad
	if bad == 0 {
		return p.differs(want, transfer.Checksum, "although each part is right")
	}
	return p.fetch(ctx)
}

// reset marks all chunks of a part as missing.
func (q *queue) reset(p *part) {
	for i := range p.chunks {
		p.void(i)
	}
}

// ChunkSums is the response of an endpoint to GET /.weir/chunks/PATH?size=N.
type ChunkSums struct {
	Size  int64    `json:"size_bytes"`
	Chunk int64    `json:"chunk_bytes"`
	Adler []string `json:"adler32"` // of each chunk, 8 digits
}

// maxSums bounds the response of an endpoint, which has 11 bytes a chunk.
const maxSums = 64 << 20

// chunkSums requests the checksums of chunks from a weir endpoint. It returns nil without an error
// if the source is not a weir endpoint.
func (p *pull) chunkSums(ctx context.Context) ([]uint32, error) {
	u, err := beside(p.url, p.l.Source.Path, Hidden+"/chunks/"+p.l.Source.Path)
	if err != nil {
		return nil, nil
	}
	u.RawQuery = fmt.Sprintf("size=%d", p.part.step)
	a, err := p.m.pool.ask(ctx, question{method: http.MethodGet, url: u, token: p.l.Source.Token, pin: p.l.Source.Pin,
		others: p.l.Source.Servers, wait: p.m.digestTime(p.l.Size)})
	if err != nil {
		return nil, err
	}
	defer a.close()
	if a.StatusCode != http.StatusOK {
		return nil, nil
	}
	var got ChunkSums
	if err := json.NewDecoder(io.LimitReader(a.Body, maxSums)).Decode(&got); err != nil || got.Chunk != p.part.step {
		return nil, nil
	}
	a.left = -1
	if got.Size != p.l.Size || len(got.Adler) != len(p.part.chunks) {
		return nil, p.wrongSize(got.Size)
	}
	sums := make([]uint32, len(got.Adler))
	for i, text := range got.Adler {
		if sums[i], err = adler.Parse(text); err != nil {
			return nil, nil
		}
	}
	return sums, nil
}

// beside returns the URL of another file of the same site: u is the URL of path.
func beside(u *url.URL, path, other string) (*url.URL, error) {
	base, ok := strings.CutSuffix(u.Path, "/"+path)
	if !ok {
		return nil, failf(transfer.Permanent, "%s does not end with the file's path %s", shown(u), path)
	}
	to := *u
	to.Path, to.RawPath, to.RawQuery = base+"/"+other, "", ""
	return &to, nil
}
