package xrootd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"weir/storage"
	"weir/storage/wireclient"
)

// stat requests a file's size.
func (x *call) stat() error {
	x.exchange.aim(rqStat)
	if _, err := x.exchange.ask(); err != nil {
		return err
	}
	size, flags, err := parseStat(x.exchange.data)
	if err != nil {
		return err
	}
	if x.Result.Folder = flags&statIsDir != 0; !x.Result.Folder {
		x.Result.Size = size
	}
	return nil
}

// list reads a folder. If the target is a redirector, it reads the folder of each data server.
func (x *call) list() error {
	seen := map[string]bool{}
	var found wireclient.Listing
	err := x.everywhere(locatePrefName, func(at *server, of int) error {
		entries, err := x.listAt(at)
		if err != nil { // a listing without the entries of a server is incomplete
			return err
		}
		for _, e := range entries {
			if of > 1 {
				if seen[e.Name] {
					continue
				}
				seen[e.Name] = true
			}
			if err := checkPath(e.Name); err != nil {
				found.Omit(err)
			} else if err := found.Add(e); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		x.SetListing(found)
	}
	return err
}

// everywhere sends a request about the operation's path to the target or, if the target is a
// redirector, to each of its data servers. It fails with fs.ErrNotExist if no server has the path.
// The star makes the redirector name all servers: its records of a folder include the servers on
// which it had the folder made, but not servers on which the folder was made for a file.
func (x *call) everywhere(options uint16, ask func(at *server, of int) error) error {
	l, err := x.exchange.session(x.s.home)
	if err != nil {
		return err
	}
	if l.flags&flagManager == 0 {
		return ask(x.s.home, 1)
	}
	servers, err := x.locations(x.exchange.appendPath([]byte{'*'}, x.Op.Path), options)
	there := false
	for i := 0; i < len(servers) && err == nil; i++ {
		var at *server
		if at, err = x.s.serverNamed(servers[i]); err == nil {
			err = ask(at, len(servers))
		}
		there = there || err == nil
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err == nil && !there {
		err = fmt.Errorf("none of %d data servers has this folder: %w", len(servers), fs.ErrNotExist)
	}
	return err
}

func (x *call) listAt(at *server) ([]storage.Entry, error) {
	x.exchange.aim(rqDirlist).params[15] = listWithStat
	if _, err := x.exchange.askAt(at); err != nil {
		return nil, err
	}
	entries, err := parseList(x.exchange.data)
	return slices.DeleteFunc(entries, func(e storage.Entry) bool { return e.Name == "." || e.Name == ".." }), err
}

// session makes sure that there is a session with a server.
func (x *exchange) session(at *server) (*link, error) {
	l := x.c.link(x, at)
	if l.wire != nil {
		return l, nil
	}
	return l, x.connect(l)
}

// locations requests the data servers that have a path. The request goes to redirectors below the
// target as well.
func (x *call) locations(path []byte, options uint16) ([]string, error) {
	e := &x.exchange
	var found []string
	ask := []*server{x.s.home}
	for asked := 0; asked < len(ask) && asked < maxRedirects; asked++ {
		e.req = request{code: rqLocate, path: true, args: append(e.req.args[:0], path...)}
		binary.BigEndian.PutUint16(e.req.params[0:], options)
		if _, err := e.askAt(ask[asked]); err != nil {
			return nil, err
		}
		servers, managers, err := parseLocate(e.data)
		if err != nil {
			return nil, err
		}
		for _, m := range managers {
			at, err := x.s.serverNamed(m)
			if err != nil {
				return nil, err
			}
			if !slices.Contains(ask, at) {
				ask = append(ask, at)
			}
		}
		if found = append(found, servers...); len(found) > maxLocations {
			return nil, wireclient.ProtocolError("more than %d locations", maxLocations)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// locate requests the servers that have a file.
func (x *call) locate() error {
	var err error
	x.Result.Servers, err = x.locations(x.exchange.appendPath(nil, x.Op.Path), 0)
	return err
}

// mkdir makes a folder and its parents: the data server that a redirector names for it may lack the
// parents.
func (x *call) mkdir() error {
	r := x.exchange.aim(rqMkdir)
	r.params[0] = mkdirPath
	binary.BigEndian.PutUint16(r.params[14:], modeFolder)
	_, err := x.exchange.ask()
	return err
}

// remove removes a file or an empty folder. The first request removes a file; if the server reports
// that the path is a folder, a second request removes that.
func (x *call) remove() error {
	if x.Op.Folder {
		return x.removeFolder()
	}
	e := &x.exchange
	e.aim(rqRm)
	_, err := e.ask()
	switch refused(err) {
	case erIsDirectory, erNotFile, erFSError:
		e.aim(rqRmdir)
		_, err = e.ask()
	}
	return err
}

// removeFolder removes an empty folder; behind a redirector it removes the folder of each data
// server.
func (x *call) removeFolder() error {
	return x.everywhere(0, func(at *server, _ int) error {
		x.exchange.aim(rqRmdir)
		_, err := x.exchange.askAt(at)
		return err
	})
}

// move gives a file or a folder another name.
func (x *call) move() error {
	if err := checkPath(x.Op.Source); err != nil {
		return err
	}
	if x.Op.Source == "" || x.Op.Path == "" {
		return fmt.Errorf("move %q to %q: %w", x.Op.Source, x.Op.Path, fs.ErrInvalid)
	}
	e := &x.exchange
	e.req = request{code: rqMv, args: e.appendPath(e.req.args[:0], x.Op.Source), path: true}
	if x.s.opaque != "" { // sendQuestion appends it to the other path
		e.req.args = append(append(e.req.args, '?'), x.s.opaque...)
	}
	binary.BigEndian.PutUint16(e.req.params[14:], uint16(len(e.req.args)))
	e.req.args = append(e.req.args, ' ')
	e.req.args = e.appendPath(e.req.args, x.Op.Path)
	_, err := e.ask()
	return err
}

// checksum requests a file's checksum.
func (x *call) checksum() error {
	if x.Op.Sum == "" || strings.ContainsAny(x.Op.Sum, "?&= \n\x00") {
		return fmt.Errorf("checksum %q: use one that the server knows, such as adler32: %w", x.Op.Sum, fs.ErrInvalid)
	}
	e := &x.exchange
	for tries := 1; ; tries++ {
		e.aim(rqQuery)
		binary.BigEndian.PutUint16(e.req.params[0:], queryChecksum)
		e.extra = "cks.type=" + x.Op.Sum
		_, err := e.ask()
		e.extra = ""
		if err != nil {
			return err
		}
		if x.Result.Sum, err = parseChecksum(e.data, x.Op.Sum); err == nil || tries == mostSumTries || !otherSum(e.data, x.Op.Sum) {
			return err
		}
		switch paused := e.pause(0, ""); {
		case errors.Is(paused, storage.ErrBusy): // no time to try again
			return err
		case paused != nil:
			return paused
		}
	}
}

// mostSumTries is the number of requests for a checksum while the response has a checksum of
// another kind: while a server computes a checksum of a file, all other checksum requests for the
// file wait for it and get the same result (XrdXrootdJob::Schedule).
const mostSumTries = 20

// ping logs in, or sends a ping if that was done before.
func (x *call) ping() error {
	e, home := &x.exchange, x.s.home
	if l := e.c.link(e, home); l.wire == nil && x.Op.Kind == storage.Login {
		return e.connect(l)
	}
	e.req = request{code: rqPing, args: e.req.args[:0]}
	_, err := e.askAt(home)
	return err
}
