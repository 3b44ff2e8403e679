package bench

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"weir/internal/adler"
	"weir/internal/trust"
	"weir/lab"
	"weir/transfer"
	"weir/transfer/mover"
)

// bothCPU is the CPU time of the program that copies plus the CPU time of the server that it copies
// from: a checksum costs one of them, or each of them.
var bothCPU = metric{"CPU per GB, client and server", "cpu-s/GB", 1, " s"}

// noSum is the name of the side with this program's mover without verification of checksums.
const noSum = "weir, no checksum"

// together is the number of files that each program copies at once.
const together = 2

// moving compares copies of large files, with checksums at both ends.
func moving(s scale) comparison {
	const files = 4
	size := 2 * s.size
	b := comparison{
		name:  "transfer-large",
		title: "Copies of large files, adler32 verified at both ends",
		about: fmt.Sprintf("%d files of %d MiB, %d at a time, to a new folder: weir's mover from `weir serve`, including the checksum; xrdcp "+
			"--cksum adler32:source and gfal-copy --checksum adler32 (in sequence, since XRootD fails on two simultaneous checksum requests "+
			"over HTTP) from XRootD, which stores checksums; rclone copy --checksum from `weir serve` over WebDAV, which finds no checksum "+
			"that it supports and compares sizes.", files, size>>20, together),
		metrics: []metric{throughput, clientCPU, serverCPU, bothCPU},
	}
	b.bars = copyBars(throughput, bothCPU, "xrdcp", "gfal-copy", "rclone")
	b.setup = func(r *rig) []side {
		door, list := r.door(files, size, false)
		x := r.xrootd(files, size)
		r.sumAll(x, files)
		all := files * size
		return []side{
			r.moverSide("weir", door, list, all, files, together, false),
			r.copySide("xrdcp", x.group, all, files, false, xrdcps(x, list)),
			r.copySide("gfal-copy", x.group, all, files, false, gfals(x, list)),
			r.rcloneSide("rclone", door, all, files, together),
			r.limitCopySide(door, list, all, files, together, false),
		}
	}
	return b
}

// copyBars returns the bars of verified copies. Half of the CPU time of the system calls is more
// than half of gfal-copy's CPU time, and of the CPU time of rclone, which computes no checksum and
// reads nothing back.
func copyBars(rate, cpu metric, peers ...string) []bar {
	bars := []bar{{metric: rate, a: "weir", b: systemCalls, least: true, limit: .9}, {metric: cpu, a: "weir", b: systemCalls, limit: 1.1}}
	for _, peer := range peers {
		least, most := 1.5, .5
		switch peer {
		case "gfal-copy":
			most = .75
		case "rclone", "rclone, both ends":
			least, most = .9, 1.1
		}
		bars = append(bars, bar{metric: rate, a: "weir", b: peer, least: true, limit: least}, bar{metric: cpu, a: "weir", b: peer, limit: most})
	}
	return bars
}

// bufferSizes are the buffers of a mover that are compared, in KiB.
var bufferSizes = []int{64, 128, 256, 512, 1024, 2048, 4096, 8192}

func bufferName(kib int) string {
	if kib < 1024 {
		return fmt.Sprintf("%d KiB", kib)
	}
	return fmt.Sprintf("%d MiB", kib/1024)
}

// buffering compares buffers of the mover.
func buffering(encrypted bool, s scale) comparison {
	const files = 4
	size := 2 * s.size
	b := comparison{
		name: "buffers-plain", title: "Buffers of the mover, without TLS",
		about: fmt.Sprintf("weir's mover copies %d files of %d MiB in sequence from nginx to a new folder with buffers (`weir agent "+
			"--buffer`) of different sizes. A buffer is what is read back at once for the checksum.", files, size>>20),
		metrics: []metric{throughput, clientCPU, serverCPU, bothCPU},
	}
	if encrypted {
		b.name, b.title = "buffers-tls", "Buffers of the mover, with TLS"
		b.about = "The same over TLS: the buffer also takes what is decrypted, 16 KiB at a time, before it is written."
	}
	usual := bufferName(mover.DefaultBuffer >> 10)
	for _, kib := range bufferSizes {
		if name := bufferName(kib); name != usual {
			b.bars = append(b.bars, bar{metric: bothCPU, a: usual, b: name, limit: 1.1})
		}
	}
	b.setup = func(r *rig) (sides []side) {
		srv, err := lab.NginxConfig{Config: lab.Config{Dir: r.path("nginx"), TLS: encrypted}}.Start(r.Context())
		r.must(err)
		r.ends(srv.Stop)
		door := server{url: srv.URL, group: srv.Pids()[0], data: srv.Data}
		var more []string
		if encrypted {
			door.url, more = srv.URLs["https"], []string{"-ca", srv.CAFile}
		}
		list := r.files(door.data, files, size, true)
		for _, kib := range bufferSizes {
			flags := append([]string{"-buffer", strconv.Itoa(kib << 10)}, more...)
			sides = append(sides, r.moverSide(bufferName(kib), door, list, files*size, files, 1, false, flags...))
		}
		return sides
	}
	return b
}

// xrdcps returns a script that copies the files of a list from XRootD into the folder $0.
func xrdcps(x server, list string) string {
	return fmt.Sprintf(`sed 's/ .*//' %s | xargs -P %d -I{} xrdcp --silent --cksum adler32:source %s/{} "$0"/{}`, list, together, x.url)
}

// gfals returns the same script with gfal-copy over HTTP, one file after the other: if two clients
// request checksums at once, XRootD responds to one of them with status 500.
func gfals(x server, list string) string {
	http := strings.Replace(x.url, "root://", "http://", 1)
	http = strings.Replace(http, "//data", "/data", 1)
	return fmt.Sprintf(`sed 's|^\([^ ]*\).*|%s/\1|' %s > "$0.list" && GFAL_PYTHONBIN=/usr/bin/python3 gfal-copy --checksum adler32 --from-file "$0.list" "file://$0"; s=$?; rm "$0.list"; exit $s`, http, list)
}

// receiving compares a verified copy with a plain copy.
func receiving(disk bool, s scale) comparison {
	const files = 4
	size := 2 * s.size
	name, where := "memory", "in memory"
	if disk {
		name, where = "disk", "on disk, synced (curl is followed by sync)"
	}
	return comparison{
		name:  "receive-" + name,
		title: "Receiving into new files, verified, to " + name,
		about: fmt.Sprintf("%d files of %d MiB from `weir serve`, in sequence, into new files %s: weir's mover, which reads back and "+
			"compares adler32 with the catalog; the mover without reading back (\"no checksum\", which no agent does); curl --output; and "+
			"a loop of system calls that receives, reads back and computes adler32.", files, size>>20, where),
		metrics: []metric{throughput, clientCPU, serverCPU},
		bars: []bar{{metric: clientCPU, a: "weir", b: systemCalls, limit: 1.1}, {metric: throughput, a: "weir", b: systemCalls, least: true,
			limit: .9}, {metric: clientCPU, a: "weir", b: "curl", limit: 1.25}},
		setup: func(r *rig) []side {
			door, list := r.door(files, size, true)
			script := fmt.Sprintf(`curl --silent --show-error --fail $(sed 's|^\([^ ]*\) .*|--output '"$0"'/\1 %s/\1|' %s)`, door.url, list)
			if disk {
				script += ` && sync "$0"/*`
			}
			return []side{
				r.moverSide("weir", door, list, files*size, files, 1, disk),
				r.moverSide(noSum, door, list, files*size, files, 1, disk, "-unread"),
				r.copySide("curl", door.group, files*size, files, disk, script),
				r.limitCopySide(door, list, files*size, files, 1, disk),
			}
		},
	}
}

// movingSmall compares copies of many small files.
func movingSmall(s scale) comparison {
	files, at := 1000, 16
	if s.size < 64<<20 {
		files = 300
	}
	const size = 64 << 10
	return comparison{
		name:  "transfer-small",
		title: "Copies of many small files",
		about: fmt.Sprintf("%d files of %d KiB from `weir serve`, %d at a time, to a new folder: weir's mover, which verifies adler32, and "+
			"rclone over WebDAV, whose pacer limits it to 100 requests/s.", files, size>>10, at),
		metrics: []metric{rate, requestCPU, serverCPU},
		bars:    []bar{{metric: rate, a: "weir", b: "rclone", least: true, limit: 3}, {metric: requestCPU, a: "weir", b: "rclone", limit: .5}},
		setup: func(r *rig) []side {
			door, list := r.door(files, size, true)
			all := int64(files) * size
			return []side{r.moverSide("weir", door, list, all, files, at, false), r.rcloneSide("rclone", door, all, files, at)}
		},
	}
}

// door starts a server with n new files, and writes a list of them: name, size and, if sums is set,
// the checksum that a catalog would have.
func (r *rig) door(n int, size int64, sums bool) (server, string) {
	dir := r.path("door")
	r.must(os.Mkdir(dir, 0o755))
	list := r.files(dir, n, size, sums)
	return r.serve(dir), list
}

// files makes the files of a server, and the list of them.
func (r *rig) files(dir string, n int, size int64, sums bool) string {
	var lines []byte
	for i := range n {
		name := fileName(i)
		r.file(filepath.Join(dir, name), size)
		sum := ""
		if sums {
			var err error
			sum, err = fileSum(filepath.Join(dir, name))
			r.must(err)
		}
		lines = fmt.Appendf(lines, "%s %d %s\n", name, size, sum)
	}
	r.must(os.WriteFile(dir+".list", lines, 0o644))
	return dir + ".list"
}

// moverSide copies the files of a list with this program's mover, with additional flags.
func (r *rig) moverSide(name string, door server, list string, bytes int64, files, at int, disk bool, more ...string) side {
	return side{name, func() (figures, error) {
		return r.copied(door.group, bytes, files, disk, func(dir string) []string {
			return append([]string{self(), moverWord, "-url", door.url, "-root", dir, "-list", list, "-together", strconv.Itoa(at)}, more...)
		})
	}}
}

// copySide runs a shell script that copies files into the folder $0, in memory or on a disk.
func (r *rig) copySide(name string, group int, bytes int64, files int, disk bool, script string) side {
	return side{name, func() (figures, error) {
		return r.copied(group, bytes, files, disk, func(dir string) []string { return []string{"sh", "-c", script, dir} })
	}}
}

// rcloneSide copies with rclone, and then runs rclone on both folders with the arguments of more,
// if there are any.
func (r *rig) rcloneSide(name string, door server, bytes int64, files, at int, more ...string) side {
	rclone := func(what string) string {
		return fmt.Sprintf(`rclone --config /dev/null --quiet %s --transfers %d --checkers %d ":webdav,url='%s':" "$0"`, what, at, at, door.url)
	}
	script := rclone("copy --checksum")
	if len(more) > 0 {
		script += " && " + rclone(strings.Join(more, " "))
	}
	return r.copySide(name, door.group, bytes, files, false, script)
}

// copied runs a program that copies into a new folder, without name servers, and returns the cost
// of the program and of the server.
func (r *rig) copied(group int, bytes int64, files int, disk bool, program func(dir string) []string) (f figures, err error) {
	dir, remove, err := r.fresh(disk)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	argv, err := withoutDNS(r.Context(), program(dir))
	if err == nil {
		err = r.touch(bytes)
	}
	if err == nil {
		f, err = r.bulk(group, files, bytes, argv...)
	}
	if err != nil {
		return nil, err
	}
	f[bothCPU] = f[clientCPU] + f[serverCPU]
	f[knownRate], f[knownCPU] = f[throughput], f[bothCPU] // nothing is registered
	f[filesRate], f[filesCPU] = f[rate], f[bothCPU]*float64(bytes)/1e9/float64(files)
	return f, nil
}

// touch uses as much memory as a copy is going to use, and frees it. The first write into memory
// that was never used, or that a virtual machine has returned to its host (a second or two after it
// was freed), adds up to twice the other cost of receiving.
func (r *rig) touch(bytes int64) error {
	f, err := os.CreateTemp(r.dir, "touched-")
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for left := bytes; left > 0 && err == nil; left -= int64(len(block)) {
		_, err = f.Write(block[:min(left, int64(len(block)))])
	}
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// fileSum returns a file's adler32.
func fileSum(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := adler.New()
	_, err = io.Copy(h, f)
	return adler.Text(h.Sum32()), err
}

// moverWord makes this program run a mover of files instead of the comparison.
const moverWord = "mover"

// runMover copies the files of a list from a server, a fixed number of them at a time, and fails
// unless each of them was copied, and verified unless -unread is set.
func runMover(args []string, _ io.Writer) (err error) {
	flags := flag.NewFlagSet(moverWord, flag.ContinueOnError)
	url := flags.String("url", "", "of the door")
	root := flags.String("root", "", "folder to copy to")
	list := flags.String("list", "", "file with a name, a size and perhaps a checksum a line")
	at := flags.Int("together", 1, "files at a time")
	unread := flags.Bool("unread", false, "read nothing back, and compute no checksum")
	buffer := flags.Int("buffer", 0, "bytes of a buffer; 0: the mover's default")
	ca := flags.String("ca", "", "PEM file of the authority of the door")
	if err := flags.Parse(args); err != nil {
		return err
	}
	leases, err := readLeases(*list, *url)
	if err != nil {
		return err
	}
	o := mover.Options{Root: *root, Unread: *unread, Buffer: *buffer}
	if *ca != "" {
		if o.CAs, err = trust.Authorities(*ca); err != nil {
			return err
		}
	}
	m, err := mover.New(o)
	if err != nil {
		return err
	}
	err = shareOut(leases, *at, func(queue <-chan transfer.Lease) (err error) {
		for l := range queue {
			if o := m.Do(context.Background(), l, nil); o.Fault != "" || o.Verified == *unread {
				err = fmt.Errorf("%s: %s: %s", l.Name, o.Fault, o.Reason)
			}
		}
		return err
	})
	return errors.Join(err, m.Close())
}

// shareOut runs a number of workers that take leases from one queue.
func shareOut(leases []transfer.Lease, workers int, work func(queue <-chan transfer.Lease) error) error {
	queue := make(chan transfer.Lease, len(leases))
	for _, l := range leases {
		queue <- l
	}
	close(queue)
	errs := make([]error, workers)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = work(queue) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func readLeases(list, url string) ([]transfer.Lease, error) {
	f, err := os.Open(list)
	if err != nil {
		return nil, err
	}
	defer f.Close()
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
