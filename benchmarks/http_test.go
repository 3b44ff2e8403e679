package bench

import (
	"fmt"
	"path/filepath"
	"time"

	"weir/lab"
)

// theFile is the file that bulk cases read; weir serve --synthetic has a file of this name.
const theFile = "file000000.dat"

func download(streams int, s scale) comparison {
	most, size := 1./10, s.size
	if streams > 1 {
		most = 1. / 6
	}
	b := comparison{
		name:  fmt.Sprintf("download-%d", streams),
		title: fmt.Sprintf("Download, %s", streamsText(streams)),
		about: fmt.Sprintf("GET of a %d MiB file from nginx. %s iperf3 has a sender of its own.", size>>20,
			curlText(streams, s.gets)),
		metrics: []metric{throughput, clientCPU, serverCPU, serverBusy},
		bars:    []bar{{metric: clientCPU, a: "weir", b: "curl", limit: most}},
		setup: func(r *rig) []side {
			srv := r.nginx(lab.NginxConfig{})
			r.file(filepath.Join(srv.data, theFile), size)
			port := r.iperf()
			sides := []side{
				r.weirSide(r.reads(srv, theFile, streams), srv.group),
				r.curlDownload(srv, theFile, size, streams),
				r.iperfSide(port, streams),
			}
			if streams == 1 {
				sides = append(sides, r.limitSide("read", srv.url+"/"+theFile, "", r.gets, size, 1))
			}
			return sides
		},
	}
	peer := bar{metric: throughput, a: "weir", b: "iperf3 -R -Z", least: true, limit: 1}
	if streams == 1 { // one worker of nginx is the limit, and iperf3 has a sender of its own
		peer.b, peer.limit = systemCalls, .9
	}
	b.bars = append(b.bars, peer)
	return b
}

func streamsText(n int) string {
	if n == 1 {
		return "one stream"
	}
	return fmt.Sprintf("%d streams", n)
}

func curlText(streams, files int) string {
	if streams == 1 {
		return fmt.Sprintf("curl transfers %d in sequence on one connection.", files)
	}
	return fmt.Sprintf("curl --parallel transfers %d on %d connections.", files, streams)
}

// reads returns the load of a number of clients that read a file repeatedly.
func (r *rig) reads(srv server, file string, streams int) load {
	return load{target: srv.url, kind: "read", file: file, clients: fmt.Sprint(streams), settle: 200 * time.Millisecond, hold: r.hold}
}

func (r *rig) curlDownload(srv server, file string, size int64, streams int) side {
	n := r.gets
	return r.curlSide(n, int64(n)*size, srv.group, curlGets(srv.url+"/"+file, n, streams)...)
}

func upload(streams int, nginx bool, s scale) comparison {
	name, to := "sink", "a sink that reads and discards, of which weir verifies nothing"
	if nginx {
		name, to = "nginx", "nginx"
	}
	size := s.size / 4
	bars := []bar{{metric: clientCPU, a: "weir", b: "curl", limit: 1. / 3}}
	if !nginx && streams > 1 { // the kernel's part is most of curl's CPU time
		bars = []bar{{metric: clientCPU, a: "weir", b: "curl", limit: 1 / 1.5}, {metric: clientCPU, a: "weir", b: systemCalls, limit: 1.1}}
	}
	return comparison{
		name:    fmt.Sprintf("upload-%s-%d", name, streams),
		title:   fmt.Sprintf("Upload to %s, %s", name, streamsText(streams)),
		about:   fmt.Sprintf("PUT of %d MiB files to %s. %s", size>>20, to, curlText(streams, s.puts)),
		metrics: []metric{throughput, clientCPU},
		bars:    bars,
		setup: func(r *rig) []side {
			source := r.path("source")
			r.file(source, size)
			url := ""
			if nginx {
				url = r.nginx(lab.NginxConfig{}).url
			} else {
				url = r.sink()
			}
			l := load{target: url, kind: "write", size: size, clients: fmt.Sprint(streams), settle: 200 * time.Millisecond, hold: r.hold}
			if nginx {
				l.most = 5 << 30 // written files stay in memory until the run ends
			} else {
				l.more = "  verify: 0%\n" // the sink keeps no file to verify
			}
			return []side{r.weirSide(l, 0), r.curlSide(r.puts, int64(r.puts)*size, 0, curlPuts(source, url, r.puts, streams)...),
				r.limitSide("write", url+"/limit", "", r.puts, size, streams)}
		},
	}
}

// builtin compares weir's own server with nginx. The same client reads from both servers.
func builtin(streams int, client string, s scale) comparison {
	size := s.size
	b := comparison{
		name:  fmt.Sprintf("serve-%s-%d", client, streams),
		title: fmt.Sprintf("Built-in server, asked by %s with %s", client, streamsText(streams)),
		about: fmt.Sprintf("GET of a %d MiB file from `weir serve` (a folder, and `--synthetic` files) and from nginx with the same folder.",
			size>>20),
		metrics: []metric{throughput, serverCPU, serverBusy, clientCPU},
		setup:   func(r *rig) []side { return r.servers(client, streams, size) },
	}
	for _, a := range []string{"weir serve DIR", "weir serve --synthetic"} {
		b.bars = append(b.bars, bar{metric: throughput, a: a, b: "nginx", least: true, limit: 1},
			bar{
				metric: serverCPU, a: a, b: "nginx", limit: 1.1,
				why: "Both servers spend it in sendfile. Over loopback the kernel charges its work to either side, " +
					"so compare the client's CPU as well.",
			})
	}
	return b
}

func (r *rig) servers(client string, streams int, size int64) []side {
	peer := r.nginx(lab.NginxConfig{})
	r.file(filepath.Join(peer.data, theFile), size)
	folder := r.serve(peer.data)
	invented := r.serve("--synthetic", fmt.Sprintf("1x%dB", size))
	ask := func(name string, srv server, file string) side {
		var s side
		if client == "curl" {
			s = r.curlDownload(srv, file, size, streams)
		} else {
			s = r.weirSide(r.reads(srv, file, streams), srv.group)
		}
		s.name = name
		return s
	}
	return []side{
		ask("weir serve DIR", folder, theFile),
		ask("nginx", peer, theFile),
		ask("weir serve --synthetic", invented, theFile),
	}
}
