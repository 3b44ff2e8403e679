package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"weir/lab"

	"weir/internal/adler"
)

// bothCPU is of the program that copies and of the server it copies from: a
// checksum costs either or both.
const bothCPU metric = "CPU per GB, client and server" // s per 1e9 B

// noSum is this program's mover without what makes it trustworthy.
const noSum = "weir, no checksum"

// together is how many files all programs copy at once.
const together = 2

// moving compares copies of large files, with checksums at both ends.
func moving(s scale) benchmark {
	const files = 4
	size := 2 * s.size
	b := benchmark{
		name:  "transfer-large",
		title: "Copies of large files, adler32 verified at both ends",
		about: fmt.Sprintf("%d files of %d MiB in memory, %d at a time, into a new folder in memory. The mover of weir's agents from the door of another (`weir serve`), which it asks for the checksum; "+
			"xrdcp --cksum adler32:source and gfal-copy --checksum adler32 (one after the other, one start for all) from XRootD, which has the checksums with its files; "+
			"rclone copy --checksum from `weir serve` over WebDAV, where it finds no checksum that it knows and compares sizes only.", files, size>>20, together),
		metrics: []metric{throughput, clientCPU, serverCPU, bothCPU},
	}
	for _, peer := range []string{"xrdcp", "gfal-copy", "rclone"} {
		b.bars = append(b.bars, bar{metric: throughput, a: "weir", b: peer, least: true, limit: 1.5, why: missed(peer)},
			bar{metric: bothCPU, a: "weir", b: peer, limit: .5, why: missed(peer)})
	}
	b.setup = func(ctx context.Context, r *rig) ([]side, error) {
		door, list, err := r.door(files, size, false)
		if err != nil {
			return nil, err
		}
		x, err := r.withFiles(ctx, files, size)
		if err == nil {
			err = sumAll(ctx, x, files)
		}
		if err != nil {
			return nil, err
		}
		all := files * size
		return []side{
			r.moverSide("weir", door, list, all, files, together, false),
			r.copySide("xrdcp", x.group, all, files, xrdcps(x, list)),
			r.copySide("gfal-copy", x.group, all, files, gfals(x, list)),
			r.rcloneSide("rclone", door, all, files, together),
		}, nil
	}
	return b
}

// missed is why a verified copy is not cheaper, or faster, beside a peer.
func missed(peer string) string {
	if strings.HasPrefix(peer, "rclone") && peer != "rclone, verified" {
		return "rclone computes no checksum here and reads nothing back; weir reads back all that it has written. Half of rclone's CPU is hardly more than what it takes to write as much into new memory, without receiving it."
	}
	return "By probes on this machine, writing a GB into new memory takes 0.2 s, receiving it 0.15 s, sending it 0.08 s and reading it back 0.08 s: the kernel's work, of which a program can leave out nothing but the last."
}

// xrdcps is a script that copies the files of a list from XRootD into the folder $0.
func xrdcps(x server, list string) string {
	return fmt.Sprintf(`sed 's/ .*//' %s | xargs -P %d -I{} xrdcp --silent --cksum adler32:source %s/{} "$0"/{}`, list, together, x.url)
}

// gfals does that with gfal-copy over HTTP, one file after the other: where two ask
// for checksums at once, XRootD answers one of them 500.
func gfals(x server, list string) string {
	http := strings.Replace(x.url, "root://", "http://", 1)
	http = strings.Replace(http, "//data", "/data", 1)
	return fmt.Sprintf(`sed 's|^\([^ ]*\).*|%s/\1|' %s > "$0.list" && GFAL_PYTHONBIN=/usr/bin/python3 gfal-copy --checksum adler32 --from-file "$0.list" "file://$0"; s=$?; rm "$0.list"; exit $s`, http, list)
}

// receiving compares a verified copy with a plain one.
func receiving(disk bool, s scale) benchmark {
	const files = 4
	size := 2 * s.size
	name, where := "memory", "memory"
	if disk {
		name, where = "disk", "a disk, until the data are there (curl is followed by sync)"
	}
	return benchmark{
		name:    "receive-" + name,
		title:   "Receiving into new files, verified, to " + name,
		about:   fmt.Sprintf("%d files of %d MiB from `weir serve`, one after the other, into new files in %s: the mover of weir's agents, which reads back what it wrote and compares its adler32 with the catalog's; the same mover, which reads nothing back and computes nothing (\"no checksum\": no agent does so); and curl --output, which computes nothing.", files, size>>20, where),
		metrics: []metric{throughput, clientCPU, serverCPU},
		bars: []bar{{metric: clientCPU, a: "weir", b: "curl", limit: 1,
			why: "Reading back costs less than curl's second copy through memory on a disk's file system; on tmpfs the kernel moves each page between lists when it is read for the first time, which is half of what reading back takes there. Mapping the file instead was tried: it takes two thirds of that in faults of pages, and a file that is cut meanwhile would end the process."},
			{metric: clientCPU, a: "weir", b: noSum, limit: 1.1,
				why: "The checksum is of what the file has, so all that was written is read once more; the sum of what is read costs less than a quarter of that."}},
		setup: func(_ context.Context, r *rig) ([]side, error) {
			door, list, err := r.door(files, size, true)
			if err != nil {
				return nil, err
			}
			weir := r.moverSide("weir", door, list, files*size, files, 1, disk)
			script := fmt.Sprintf(`curl --silent --show-error --fail $(sed 's|^\([^ ]*\) .*|--output '"$0"'/\1 %s/\1|' %s)`, door.url, list)
			if disk {
				script += ` && sync "$0"/*`
			}
			curl := side{"curl", func(ctx context.Context) (figures, error) {
				return r.shell(ctx, door.group, files*size, files, script, disk)
			}}
			return []side{weir, r.moverSide(noSum, door, list, files*size, files, 1, disk, "-unread"), curl}, nil
		},
	}
}

// movingSmall compares copies of many small files.
func movingSmall(s scale) benchmark {
	files, at := 1000, 16
	if s.size < 64<<20 {
		files = 300
	}
	const size = 64 << 10
	return benchmark{
		name:    "transfer-small",
		title:   "Copies of many small files",
		about:   fmt.Sprintf("%d files of %d KiB from `weir serve` into a new folder in memory, %d at a time: the mover of weir's agents, with adler32 verified, and rclone copy over WebDAV, which by itself makes no more than 100 requests a second (its pacer rests for 10 ms).", files, size>>10, at),
		metrics: []metric{rate, requestCPU, serverCPU},
		bars:    []bar{{metric: rate, a: "weir", b: "rclone", least: true, limit: 3}, {metric: requestCPU, a: "weir", b: "rclone", limit: .5}},
		setup: func(_ context.Context, r *rig) ([]side, error) {
			door, list, err := r.door(files, size, true)
			if err != nil {
				return nil, err
			}
			all := int64(files) * size
			return []side{r.moverSide("weir", door, list, all, files, at, false), r.rcloneSide("rclone", door, all, files, at)}, nil
		},
	}
}

// door starts a door with n new files, and writes a list of them: name, size
// and, if sums says so, the checksum that a catalog would have.
func (r *rig) door(n int, size int64, sums bool) (server, string, error) {
	dir := filepath.Join(r.dir, "door-"+strconv.Itoa(len(r.stops)))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return server{}, "", err
	}
	r.stops = append(r.stops, func() error { return errors.Join(os.RemoveAll(dir), os.Remove(dir+".list")) })
	var lines []byte
	for i := range n {
		name := fileName(i)
		err := makeFile(filepath.Join(dir, name), size)
		sum := ""
		if err == nil && sums {
			sum, err = fileSum(filepath.Join(dir, name))
		}
		if err != nil {
			return server{}, "", err
		}
		lines = fmt.Appendf(lines, "%s %d %s\n", name, size, sum)
	}
	if err := os.WriteFile(dir+".list", lines, 0o644); err != nil {
		return server{}, "", err
	}
	srv, err := r.serve(dir)
	return srv, dir + ".list", err
}

// fresh makes a new folder, in memory or not, and returns what removes it.
func (r *rig) fresh(disk bool) (string, func() error, error) {
	parent := r.dir
	if disk {
		parent = os.TempDir()
	}
	dir, err := os.MkdirTemp(parent, "weir-bench-copy-")
	return dir, func() error { return os.RemoveAll(dir) }, err
}

// moverSide has this program's mover copy the files of a list, with more flags.
func (r *rig) moverSide(name string, door server, list string, bytes int64, files, at int, disk bool, more ...string) side {
	return side{name, func(ctx context.Context) (figures, error) {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		dir, remove, err := r.fresh(disk)
		if err != nil {
			return nil, err
		}
		argv := append([]string{self, moverWord, "-url", door.url, "-root", dir, "-list", list, "-together", strconv.Itoa(at)}, more...)
		f, err := r.copied(ctx, door.group, bytes, files, argv...)
		return f, errors.Join(err, remove())
	}}
}

// copySide runs a shell script that copies files into the folder $0, in memory.
func (r *rig) copySide(name string, group int, bytes int64, files int, script string) side {
	return side{name, func(ctx context.Context) (figures, error) { return r.shell(ctx, group, bytes, files, script, false) }}
}

func (r *rig) shell(ctx context.Context, group int, bytes int64, files int, script string, disk bool) (figures, error) {
	dir, remove, err := r.fresh(disk)
	if err != nil {
		return nil, err
	}
	f, err := r.copied(ctx, group, bytes, files, "sh", "-c", script, dir)
	return f, errors.Join(err, remove())
}

// rcloneSide copies with rclone, and has it do something more with both folders.
func (r *rig) rcloneSide(name string, door server, bytes int64, files, at int, more ...string) side {
	rclone := func(what string) string {
		return fmt.Sprintf(`rclone --config /dev/null --quiet %s --transfers %d --checkers %d ":webdav,url='%s':" "$0"`, what, at, at, door.url)
	}
	script := rclone("copy --checksum")
	if len(more) > 0 {
		script += " && " + rclone(strings.Join(more, " "))
	}
	return r.copySide(name, door.group, bytes, files, script)
}

// copied runs a program, without name servers, and says what it and the server
// have cost.
func (r *rig) copied(ctx context.Context, group int, bytes int64, files int, argv ...string) (figures, error) {
	argv, err := withoutDNS(ctx, argv)
	if err != nil {
		return nil, err
	}
	if err := r.touch(bytes); err != nil {
		return nil, err
	}
	var u usage
	served, err := during(group, func() (err error) {
		u, err = runChild(ctx, nil, nil, argv...)
		return err
	})
	if err != nil {
		return nil, err
	}
	gb := float64(bytes) / 1e9
	f := figures{throughput: float64(bytes) / u.wall.Seconds(), clientCPU: u.cpu.Seconds() / gb, serverCPU: served.Seconds() / gb,
		rate: float64(files) / u.wall.Seconds(), requestCPU: u.cpu.Seconds() / float64(files)}
	f[bothCPU] = f[clientCPU] + f[serverCPU]
	f[knownRate], f[knownCPU] = f[throughput], f[bothCPU] // nothing is registered
	return f, nil
}

// touch uses as much memory as a copy is going to, and frees it. Memory that was
// never used, or that a virtual machine has given back to its host (a second or two
// after it was freed), costs whoever writes into it first, up to twice what else it
// takes to receive.
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
	defer f.Close() //nolint:errcheck // only read
	h := adler.New()
	_, err = io.Copy(h, f)
	return adler.Text(h.Sum32()), err
}

// withoutDNS returns a program that runs where no name server is asked.
func withoutDNS(ctx context.Context, argv []string) ([]string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	if os.Geteuid() == 0 {
		if err := lab.NoDNS(cmd); err != nil {
			return nil, err
		}
	}
	return append([]string{cmd.Path}, cmd.Args[1:]...), nil
}
