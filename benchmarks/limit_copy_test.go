package bench

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"weir/internal/adler"
	"weir/transfer"
)

// limitCopySide runs little more than the system calls of a verified copy: see runCopyLimit.
func (r *rig) limitCopySide(door server, list string, bytes int64, files, at int, disk bool) side {
	return side{systemCalls, func() (figures, error) {
		return r.copied(door.group, bytes, files, disk, func(dir string) []string {
			return []string{self(), copyLimitWord, list, door.url, dir, strconv.Itoa(at), strconv.FormatBool(disk)}
		})
	}}
}

// copyLimitWord makes this program run a loop of these system calls instead of the comparison.
const copyLimitWord = "copy-system-calls"

// runCopyLimit copies the files of a list over HTTP, a fixed number of them at a time, each
// connection with a blocking socket: the kernel moves the received data through a pipe into a file
// (splice), which is then read back, 256 KiB at a time, for its adler32, and synced if this is
// requested. Its arguments are the list, the URL, the folder to copy to, the number of files at a
// time, and whether to sync.
func runCopyLimit(args []string, _ io.Writer) error {
	leases, err := readLeases(args[0], args[1])
	if err != nil {
		return err
	}
	at, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	u, err := url.Parse(args[1])
	if err != nil {
		return err
	}
	return shareOut(leases, at, func(queue <-chan transfer.Lease) error { return copyAll(queue, u.Host, args[2], args[4] == "true") })
}

func copyAll(queue <-chan transfer.Lease, address, root string, disk bool) error {
	c, err := block(address)
	if err != nil {
		return err
	}
	defer syscall.Close(c.fd)
	var pipe [2]int
	if err := syscall.Pipe2(pipe[:], syscall.O_CLOEXEC); err != nil {
		return err
	}
	defer func() { _, _ = syscall.Close(pipe[0]), syscall.Close(pipe[1]) }()
	if _, err := unix.FcntlInt(uintptr(pipe[0]), unix.F_SETPIPE_SZ, 1<<20); err != nil {
		return err
	}
	buf := make([]byte, 256<<10)
	for f := range queue {
		u, err := url.Parse(f.Source.URL)
		if err != nil {
			return err
		}
		l := &limit{blocked: c, stream: c, url: u, size: f.Size}
		if err := l.copy(pipe, filepath.Join(root, f.Dest.Path), f.Adler, disk, buf); err != nil {
			return err
		}
	}
	return nil
}

// copy copies one file. It computes a checksum even if sum is empty.
func (l *limit) copy(pipe [2]int, name, sum string, disk bool, buf []byte) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := fmt.Fprintf(l.stream, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", l.url.Path, l.url.Host); err != nil {
		return err
	}
	body, err := l.answer("200")
	if err != nil {
		return err
	}
	if _, err := f.Write(body); err != nil {
		return err
	}
	if err := l.move(pipe, int(f.Fd()), l.size-int64(len(body))); err != nil {
		return err
	}
	if disk {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	h := adler.New()
	if n, err := io.CopyBuffer(h, io.NewSectionReader(f, 0, l.size), buf); err != nil || n != l.size {
		return errors.Join(fmt.Errorf("%s: %d of %d bytes read back", name, n, l.size), err)
	}
	if got := adler.Text(h.Sum32()); sum != "" && got != sum {
		return fmt.Errorf("%s: adler32 %s instead of %s", name, got, sum)
	}
	return nil
}

// move makes the kernel move n bytes into a file, through a pipe, in pieces that stay in the
// processor's cache.
func (l *limit) move(pipe [2]int, file int, n int64) error {
	for n > 0 {
		piece := int(min(n, 256<<10))
		if err := l.wakeAt(piece); err != nil {
			return err
		}
		got, err := unix.Splice(l.fd, nil, pipe[1], nil, piece, unix.SPLICE_F_MOVE)
		if err == nil && got == 0 {
			err = io.ErrUnexpectedEOF
		}
		for left := got; left > 0 && err == nil; {
			var put int64
			put, err = unix.Splice(pipe[0], nil, file, nil, int(left), unix.SPLICE_F_MOVE)
			left -= put
		}
		if err != nil {
			return err
		}
		n -= got
	}
	return nil
}
