package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"weir/internal/content"
	"weir/storage"
)

// A client runs one program at a time.
type client struct {
	*service
	base string // its scratch files begin with this
	room string // an empty folder for the next job, if there is one
	jobs int    // folders made for jobs
}

// Close implements storage.Client.
func (c *client) Close() error {
	var errs []error
	for _, name := range []string{c.base + "dest", c.base + "sink", c.room} {
		if err := os.RemoveAll(name); err != nil {
			errs = append(errs, err)
		}
	}
	c.room = ""
	return errors.Join(errs...)
}

// Do implements storage.Client.
func (c *client) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	if op.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, op.Timeout)
		defer cancel()
	}
	res, err := c.do(ctx, op, &progress{to: p, read: op.Kind == storage.Read})
	if err != nil {
		if errors.Is(err, fs.ErrPermission) { // for the programs that follow
			c.cred.Secret().Reread()
			c.cred.Bearer().Reread()
		}
		err = &storage.OpError{Kind: op.Kind, URL: c.place.shown(op.Path), Err: err}
	}
	res.Renewed = c.cred.Renewals()
	return res, err
}

func (c *client) do(ctx context.Context, op *storage.Op, p *progress) (storage.Result, error) {
	res := storage.Result{Size: -1}
	if err := ctx.Err(); err != nil {
		return res, err
	}
	if _, ok := c.tool.lines[op.Kind]; !ok {
		if op.Kind == storage.Run {
			return res, fmt.Errorf("%w as a job: a job's command is a program of your own that takes {url}, {path} and {size}",
				errors.ErrUnsupported)
		}
		return res, fmt.Errorf("this command cannot %s: %w", op.Kind, errors.ErrUnsupported)
	}
	if err := c.place.check(op); err != nil {
		return res, err
	}
	switch op.Kind {
	case storage.Read:
		return c.read(ctx, op, p)
	case storage.Write:
		return c.write(ctx, op, p)
	case storage.Run:
		return c.job(ctx, op)
	}
	return c.ask(ctx, op)
}

// A progress counts the reported bytes, so that the final count can be exact.
type progress struct {
	to    storage.Progress
	read  bool
	moved int64
}

// upTo reports that n bytes have moved since the operation began.
func (p *progress) upTo(n int64) {
	if n <= p.moved {
		return
	}
	if p.read && p.moved == 0 {
		p.to.Reached(storage.FirstByte)
	}
	p.to.Moved(int(n - p.moved))
	p.moved = n
}

// value returns the value of a placeholder.
func (c *client) value(op *storage.Op, part storage.Range, dest, source string) func(string) (string, error) {
	number := func(n int64) (string, error) {
		if n < 0 {
			return "", errUnknownSize
		}
		return strconv.FormatInt(n, 10), nil
	}
	return func(name string) (string, error) {
		switch name {
		case "url":
			return c.place.of(op.Path, c.tool.raw || c.tool.argv == nil), nil
		case "path":
			return op.Path, nil
		case "fullpath":
			return c.place.full(op.Path), nil
		case "server":
			return c.place.server, nil
		case "size":
			return number(op.Size)
		case "offset":
			return number(part.Offset)
		case "length":
			return number(part.Length)
		case "last":
			return number(part.Offset + part.Length - 1)
		case "dest":
			return dest, nil
		case "source":
			return source, nil
		case "sum":
			return op.Sum, nil
		case "config":
			return c.conf, nil
		}
		return "", fmt.Errorf("unknown placeholder {%s}", name)
	}
}

// ask runs the kinds that return a result instead of payload.
func (c *client) ask(ctx context.Context, op *storage.Op) (storage.Result, error) {
	res := storage.Result{Size: -1}
	if op.Kind == storage.Checksum {
		if _, err := content.NewHash(op.Sum); err != nil {
			return res, err
		}
	}
	l := c.tool.lines[op.Kind]
	argv, err := l.expand(c.value(op, storage.Range{}, "", ""))
	if err != nil {
		return res, err
	}
	r, err := c.run(ctx, l, argv, true, func(int) {})
	res.Process = r.usage
	if err != nil {
		return res, err
	}
	if err := c.check(l, r); err != nil {
		return res, err
	}
	switch op.Kind {
	case storage.Stat:
		res.Size, err = c.tool.stat(r.stdout)
	case storage.List:
		var all entries
		all, err = c.tool.list(r.stdout, c.place.full(op.Path), c.place.of(op.Path, true))
		res.Entries = slices.DeleteFunc(all, func(e storage.Entry) bool {
			why := c.place.check(&storage.Op{Path: e.Name})
			if why != nil {
				res.Omit(why)
			}
			return why != nil
		})
	case storage.Checksum:
		hex, ok := c.tool.sum(r.stdout)
		if !ok {
			return res, fmt.Errorf("%w: no checksum in %q", storage.ErrProtocol, tidy(r.stdout, c.secrets()))
		}
		res.Sum = op.Sum + ":" + hex
	case storage.Remove:
		c.forget(op.Path)
	}
	return res, err
}

// fileSum sums a file up.
func fileSum(alg, name string) (string, error) {
	h, err := content.NewHash(alg)
	if err != nil {
		return "", err
	}
	f, err := os.Open(name)
	if err != nil {
		return "", unclassed{err}
	}
	defer f.Close()
	if _, err := io.Copy(h, f); err != nil {
		return "", unclassed{err}
	}
	return content.Text(alg, h), nil
}
