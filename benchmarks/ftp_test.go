package bench

import (
	"fmt"
	"strings"
	"time"
)

// guc returns a command that copies theFile to /dev/null several times in one session of
// globus-url-copy.
func guc(srv server, files int, options string) string {
	return fmt.Sprintf("seq %d | sed 's|.*|%s/%s file:///dev/null|' | globus-url-copy %s -f -", files, srv.url, theFile, options)
}

func ftpDownload(streams int, s scale) comparison {
	size := 8 * s.size
	b := comparison{
		name:  fmt.Sprintf("ftp-download-%d", streams),
		title: fmt.Sprintf("ftp:// download, %s", streamsText(streams)),
		about: fmt.Sprintf("A %d MiB file from a GridFTP server. Several streams belong to one transfer in extended block mode (weir: "+
			"in_flight; globus-url-copy: -p).", size>>20),
		metrics: []metric{throughput, clientCPU},
		bars: []bar{
			{metric: clientCPU, a: "weir", b: "globus-url-copy", limit: .75},
			{metric: throughput, a: "weir", b: "globus-url-copy", least: true, limit: .9, why: "Client and server share the cores."},
		},
		setup: func(r *rig) []side {
			srv := r.gridftp(size)
			work, options := "", ""
			if streams > 1 {
				work, options = fmt.Sprintf("  in_flight: %d\n", streams), fmt.Sprintf("-p %d", streams)
			}
			sides := r.shapes(r.reads(srv, theFile, 1), 0, shape{"weir", work})
			sides = append(sides, r.script("globus-url-copy", 8, 8*size, 0, guc(srv, 8, options)))
			if streams == 1 {
				sides = append(sides, r.curlSide(8, 8*size, 0, curlGets(fullPath(srv), 8, 1)...))
			}
			return sides
		},
	}
	if streams == 1 {
		b.about += " curl sends TYPE after PASV and therefore receives text with converted line ends, of the same volume."
	}
	return b
}

// fullPath returns the URL of theFile for curl, which takes a path as relative to the folder of the
// login unless it begins with two slashes.
func fullPath(srv server) string {
	host, path, _ := strings.Cut(strings.TrimPrefix(srv.url, "ftp://"), "/")
	return "ftp://" + host + "//" + path + "/" + theFile
}

func ftpSmall(s scale) comparison {
	const size = 4 << 10
	files := max(200, s.puts*8)
	return comparison{
		name:  "ftp-small",
		title: "ftp:// files of 4 KiB, one kept session",
		about: fmt.Sprintf("One session reads one file repeatedly: weir in passive mode (a data connection per file) and with in_flight: 2 "+
			"(two persistent ones); globus-url-copy with a list of %d copies, by default and with -fast (persistent); wget with a list of %d.",
			files, files/10),
		metrics: []metric{rate, requestCPU},
		bars: []bar{
			{metric: rate, a: "weir", b: "globus-url-copy", least: true, limit: .75, why: "Client and server alternate, " +
				"so other load on the machine delays each of them."},
			{metric: requestCPU, a: "weir", b: "globus-url-copy", limit: 1.25},
			{metric: rate, a: "weir", b: "wget", least: true, limit: 2},
		},
		setup: func(r *rig) []side {
			srv := r.gridftp(size)
			l := r.reads(srv, theFile, 1)
			l.settle = 500 * time.Millisecond
			sides := r.shapes(l, 0, shape{"weir", ""}, shape{"weir, in_flight 2", "  in_flight: 2\n"})
			wget := fmt.Sprintf("seq %d | sed 's|.*|%s|' | wget --quiet --output-document /dev/null --input-file -", files/10, fullPath(srv))
			return append(sides,
				r.script("globus-url-copy", files, int64(files)*size, 0, guc(srv, files, "")),
				r.script("globus-url-copy -fast", files, int64(files)*size, 0, guc(srv, files, "-fast")),
				r.script("wget", files/10, int64(files/10)*size, 0, wget))
		},
	}
}
