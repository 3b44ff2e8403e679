package mover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"syscall"
	"time"

	"weir/internal/adler"
	"weir/internal/pause"
	"weir/transfer"
)

// A push is one attempt to send a file to the endpoint of another site.
type push struct {
	m        *Mover
	l        transfer.Lease
	r        *reporter
	to, temp *url.URL // the file, and its temporary name
	part     string   // path of temp
	file     *os.File
	want     sum
	replaces bool // the server's MOVE replaces files despite Overwrite: F
	keeps    bool // the server keeps the received parts of an interrupted push, see parts.go
	out      *transfer.Outcome
}

// push sends a file: first under a temporary name, where the other site reads it back to compute
// the checksum, then it is renamed to its own name if that is free.
func (m *Mover) push(ctx context.Context, l transfer.Lease, r *reporter, out *transfer.Outcome) (err error) {
	p := &push{m: m, l: l, r: r, out: out, want: catalogSum(l)}
	out.Unwritten = true
	if p.to, err = address(l.Dest); err != nil {
		return err
	}
	p.part = cmp.Or(l.Dest.Temp, partName(l.Item, l.Epoch))
	if p.temp, err = beside(p.to, l.Dest.Path, p.part); err != nil {
		return err
	}
	sourceErr := p.openSource(ctx)
	if sourceErr == nil {
		defer p.file.Close()
	}
	if p.want.known { // the file may have arrived already, and its source may be lost
		if same, err := p.there(ctx); same || err != nil {
			return err
		}
	}
	if sourceErr != nil {
		return sourceErr
	}
	err = p.bring(ctx)
	out.Moved = r.moved.Load()
	if err == nil {
		err = p.move(ctx)
	}
	if err != nil && !out.Unwritten && !errors.Is(err, errUnknown) && !p.goesOn(ctx, err) {
		p.remove(ctx)
	}
	return err
}

// goesOn reports whether, after an error, another attempt can resume from the data at the
// destination.
func (p *push) goesOn(ctx context.Context, err error) bool {
	return p.keeps && worthKeeping(troubleOf(ctx, err).fault)
}

// bring sends the file and requests the checksum of the received data. If the server keeps parts,
// only the missing parts are sent, and parts that were damaged on the way are sent again.
func (p *push) bring(ctx context.Context) error {
	if p.keeps = p.l.Size >= worthAsking && p.keepsParts(ctx); !p.keeps {
		if err := p.put(ctx, 0, p.l.Size); err != nil {
			return err
		}
		return p.verify(ctx)
	}
	most := int64(-1)
	for vain := 1; ; vain++ {
		has, err := p.fill(ctx)
		if has > most {
			most, vain = has, 0
		}
		if err == nil {
			err = p.verify(ctx)
		}
		if err == nil || vain == rounds || troubleOf(ctx, err).fault != transfer.Checksum {
			return err
		}
	}
}

// openSource opens the file at this site.
func (p *push) openSource(ctx context.Context) error {
	name := p.l.Source.Path
	f, err := p.m.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return failf(transfer.SourceBad, "%s is not there", name)
	}
	if err != nil {
		return local("read "+name, err)
	}
	p.file = f
	info, err := f.Stat()
	switch {
	case err != nil:
		err = local("look at "+name, err)
	case !info.Mode().IsRegular():
		err = failf(transfer.SourceBad, "%s is no plain file", name)
	case info.Size() != p.l.Size:
		err = failf(transfer.SourceBad, "%s has %d bytes, not the %d of the catalog", name, info.Size(), p.l.Size)
	case !p.want.known:
		_, p.want.value, err = p.m.localSum(ctx, name, p.r)
		p.want.known = err == nil
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return nil
}

// question returns a request to the destination.
func (p *push) question(method string, u *url.URL, header ...string) question {
	return question{method: method, url: u, token: p.l.Dest.Token, pin: p.l.Dest.Pin, others: p.l.Dest.Servers, header: header}
}

// there checks whether the destination has the file already. Another file of the same name is an
// error.
func (p *push) there(ctx context.Context) (same bool, err error) {
	a, reported, err := p.m.askHead(ctx, p.to, p.l.Dest, p.l.Size, p.want)
	if err != nil {
		return false, err
	}
	switch {
	case a.StatusCode == http.StatusNotFound:
		return false, nil
	case a.StatusCode != http.StatusOK:
		return false, a.refused("look for "+p.l.Dest.Path+" at the destination", transfer.Transient)
	case a.ContentLength != p.l.Size:
		return false, failf(transfer.Occupied, "another file is called %s at the destination: it has %d bytes, not %d", p.l.Dest.Path,
			a.ContentLength, p.l.Size)
	case reported.known && reported.value != p.want.value:
		return false, failf(transfer.Occupied, "another file is called %s at the destination: its adler32 is %s, not %s", p.l.Dest.Path,
			adler.Text(reported.value), adler.Text(p.want.value))
	case !reported.known && !p.l.Unchecked:
		return false, failf(transfer.Occupied, "a file is called %s at the destination, which tells no checksum of it", p.l.Dest.Path)
	}
	p.done(reported)
	p.out.Existed = true
	return true, nil
}

// done records the outcome of a file that is at the destination, with the checksum reported there.
func (p *push) done(reported sum) {
	p.out.Size, p.out.Verified = p.l.Size, reported.known
	if reported.known {
		p.out.Adler = adler.Text(reported.value)
	}
}

// put sends n bytes of the file, beginning at off, to its temporary name.
func (p *push) put(ctx context.Context, off, n int64) error {
	p.r.stage(transfer.Moving)
	for try := 0; ; try++ {
		q := p.question(http.MethodPut, p.temp)
		q.body, q.off, q.size, q.wait = p.file, off, n, p.m.digestTime(p.l.Size)
		if p.keeps {
			q.header = []string{"Content-Range", fmt.Sprintf("bytes %d-%d/%d", off, off+n-1, p.l.Size)}
		}
		q.sent = func(n int64) { p.r.add(n); p.m.moved.Add(n) }
		p.out.Unwritten = false
		a, err := p.m.pool.ask(ctx, q)
		if err != nil {
			return err
		}
		switch {
		case a.StatusCode/100 == 2:
			a.close()
			return nil
		case try < mostFolders && parentless(a.StatusCode):
			a.close()
			if err := p.parents(ctx, path.Dir(p.part), try); err != nil {
				return err
			}
		default:
			err := a.refused("send "+p.l.Name, transfer.Transient)
			a.close()
			if p.keeps && a.StatusCode == http.StatusConflict {
				err.fault = transfer.Transient // the part differs from its state a moment ago
			}
			return err
		}
	}
}

// parentless reports whether a status may mean that a folder is missing: RFC 4918 specifies 409,
// nginx returns 500 to PUT, rclone 403 to MOVE, others 404.
func parentless(status int) bool {
	switch status {
	case http.StatusConflict, http.StatusNotFound, http.StatusForbidden, http.StatusInternalServerError:
		return true
	}
	return false
}

// mostFolders is the maximum number of attempts to make a folder for one file: other clients may
// make it at the same time, and Apache then returns 403, rclone 423 and other servers other
// statuses.
const mostFolders = 3

// parents makes the folder for a request that is then tried again; it returns an error if it may
// not make the folder.
func (p *push) parents(ctx context.Context, dir string, try int) error {
	err := p.mkcol(ctx, dir)
	var t *trouble
	if errors.As(err, &t) && t.fault == transfer.Denied && (t.status == http.StatusUnauthorized || try == mostFolders-1) {
		return err
	}
	if err != nil || try > 0 {
		pause.For(ctx, time.Duration(50<<try)*time.Millisecond)
	}
	return ctx.Err()
}

// mkcol makes a folder at the destination, and its parents if necessary.
func (p *push) mkcol(ctx context.Context, dir string) error {
	if dir == "." {
		return nil
	}
	u, err := beside(p.to, p.l.Dest.Path, dir+"/")
	if err != nil {
		return err
	}
	for again := false; ; again = true {
		a, err := p.m.pool.ask(ctx, p.question("MKCOL", u))
		if err != nil {
			return err
		}
		if !again && (a.StatusCode == http.StatusConflict || a.StatusCode == http.StatusNotFound) {
			a.close()
			if err := p.mkcol(ctx, path.Dir(dir)); err != nil {
				return err
			}
			continue
		}
		refused := a.refused("make the folder "+dir+" at the destination", transfer.Permanent)
		a.close()
		if a.StatusCode/100 == 2 || a.StatusCode == http.StatusMethodNotAllowed { // the last: it exists
			return nil
		}
		return refused
	}
}

// verify compares the size and checksum at the destination with the expected values.
func (p *push) verify(ctx context.Context) error {
	p.r.stage(transfer.Verifying)
	a, reported, err := p.m.askHead(ctx, p.temp, p.l.Dest, p.l.Size, p.want)
	switch {
	case err != nil:
		return err
	case a.StatusCode != http.StatusOK:
		return a.refused("ask for what arrived", transfer.Transient)
	case a.ContentLength != p.l.Size:
		return failf(transfer.Checksum, "%d bytes arrived at %s, not %d", a.ContentLength, p.to.Host, p.l.Size)
	case !reported.known && !p.l.Unchecked:
		return failf(transfer.Unverified, "%s tells no adler32 of what arrived", p.to.Host)
	case reported.known && reported.value != p.want.value:
		return p.differs(ctx, reported.value)
	case !reported.known: // the server computes no checksum: at least check that the source is undamaged
		if err := p.sound(ctx); err != nil {
			return err
		}
	}
	p.done(reported)
	p.replaces = isXRootD(a.Header)
	return nil
}

// differs determines whether the source or the transfer has damaged the file.
func (p *push) differs(ctx context.Context, arrived uint32) error {
	var t *trouble
	if err := p.sound(ctx); errors.As(err, &t) && t.fault == transfer.SourceBad {
		return err
	}
	return failf(transfer.Checksum, "%s: adler32 is %s at %s, not %s", p.l.Name, adler.Text(arrived), p.to.Host, adler.Text(p.want.value))
}

// sound computes the checksum of the source file and compares it with the expected checksum.
func (p *push) sound(ctx context.Context) error {
	_, has, err := p.m.localSum(ctx, p.l.Source.Path, p.r)
	if err == nil && has != p.want.value {
		return failf(transfer.SourceBad, "%s is spoiled here: its adler32 is %s, not %s", p.l.Name, adler.Text(has), adler.Text(p.want.value))
	}
	return err
}

// errUnknown is the error if it is unknown whether the file has its name: nothing is removed then.
var errUnknown = errors.New("it is not known whether the file got its name")

// move renames the temporary to the name of the file.
func (p *push) move(ctx context.Context) error {
	p.r.stage(transfer.Committing)
	if p.replaces { // XRootD 5.5.3 ignores Overwrite: check again, which leaves a gap of one round trip
		if same, err := p.there(ctx); same || err != nil {
			p.remove(ctx)
			return err
		}
	}
	for try := 0; ; try++ {
		a, err := p.m.pool.ask(ctx, p.question("MOVE", p.temp, "Destination", p.to.String(), "Overwrite", "F"))
		if err != nil {
			return p.moved(ctx, err)
		}
		refused := a.refused("give "+p.l.Name+" its name", transfer.Transient)
		a.close()
		switch {
		case a.StatusCode/100 == 2:
			return p.named(ctx)
		case try < mostFolders && parentless(a.StatusCode) && p.parents(ctx, path.Dir(p.l.Dest.Path), try) == nil:
		default:
			same, err := p.there(ctx) // another client was quicker, or a response was lost
			if same {
				p.remove(ctx)
			}
			if same || err != nil {
				return err
			}
			return refused
		}
	}
}

// named checks the file under its final name: it is there only if the server really renamed it.
func (p *push) named(ctx context.Context) error {
	same, err := p.there(ctx)
	if p.out.Existed = false; err == nil && !same {
		err = failf(transfer.Checksum, "%s says that it gave %s its name, and has no such file", p.to.Host, p.l.Name)
	}
	return err
}

// moved checks whether a file got its name although no response confirmed it.
func (p *push) moved(ctx context.Context, err error) error {
	if same, thereErr := p.there(ctx); same {
		p.out.Existed = false // this attempt made it
		return nil
	} else if thereErr == nil && ctx.Err() == nil {
		return err // it did not get its name
	}
	t := troubleOf(ctx, err)
	return &trouble{fault: t.fault, reason: t.reason, status: t.status, here: t.here, err: errUnknown}
}

// remove removes the temporary file, which belongs to this attempt. A failure does not change the
// outcome.
func (p *push) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if a, err := p.m.pool.ask(ctx, p.question(http.MethodDelete, p.temp)); err == nil {
		a.close()
	}
}
