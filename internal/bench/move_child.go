package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"

	"weir/transfer"
	"weir/transfer/mover"
)

// moverWord makes this program a mover of files instead of the comparison.
const moverWord = "mover"

// runMover copies the files of a list from a door, so many at a time, and fails
// unless each of them is there, verified if they are to be.
func runMover(args []string, _ io.Writer) (err error) {
	flags := flag.NewFlagSet(moverWord, flag.ContinueOnError)
	url := flags.String("url", "", "of the door")
	root := flags.String("root", "", "folder to copy to")
	list := flags.String("list", "", "file with a name, a size and perhaps a checksum a line")
	at := flags.Int("together", 1, "files at a time")
	unread := flags.Bool("unread", false, "read nothing back, and compute no checksum")
	if err := flags.Parse(args); err != nil {
		return err
	}
	leases, err := readLeases(*list, *url)
	if err != nil {
		return err
	}
	m, err := mover.New(mover.Options{Root: *root, Unread: *unread})
	if err != nil {
		return err
	}
	queue := make(chan transfer.Lease)
	failures := make([]error, *at)
	var all sync.WaitGroup
	for i := range *at {
		all.Go(func() {
			for l := range queue {
				if o := m.Do(context.Background(), l, nil); o.Fault != "" || o.Verified == *unread {
					failures[i] = fmt.Errorf("%s: %s: %s", l.Name, o.Fault, o.Reason)
				}
			}
		})
	}
	for _, l := range leases {
		queue <- l
	}
	close(queue)
	all.Wait()
	return errors.Join(append(failures, m.Close())...)
}

func readLeases(list, url string) ([]transfer.Lease, error) {
	f, err := os.Open(list)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	var leases []transfer.Lease
	for lines := bufio.NewScanner(f); lines.Scan(); {
		l := transfer.Lease{Item: int64(len(leases) + 1), Epoch: 1, Mode: transfer.Pull, Streams: 1}
		var name string
		if n, err := fmt.Sscan(lines.Text(), &name, &l.Size, &l.Adler); n < 2 {
			return nil, fmt.Errorf("%s: %w", list, err)
		}
		l.Name = "/" + name
		l.Source = transfer.End{Site: "source", Path: name, URL: url + "/" + name}
		l.Dest = transfer.End{Site: "here", Path: name}
		leases = append(leases, l)
	}
	return leases, nil
}
