package slow_test

import (
	"testing"

	"weir/internal/cause"
	"weir/internal/slow"
)

// flows returns flows of one stream with the given rates.
func flows(wire slow.Wire, rates ...float64) (all []slow.Flow) {
	wire.Measured = true
	for _, r := range rates {
		all = append(all, slow.Flow{Streams: 1, Bytes: 4 * r, Seconds: 4, Rate: r, Wire: wire})
	}
	return all
}

// many returns flows of 2, 4 and 8 streams.
func many(rates ...float64) (all []slow.Flow) {
	for i, r := range rates {
		all = append(all, slow.Flow{Streams: 2 << i, Seconds: 4, Rate: r})
	}
	return all
}

const giB = 1 << 30

// Each rule names its cause from the measurements that it compares, and from no others.
func TestJudge(t *testing.T) {
	t.Parallel()
	far := slow.Wire{MinRTT: 0.04, RTT: 0.04, Window: 6 << 20}
	lossy := slow.Wire{MinRTT: 0.04, RTT: 0.04, Window: 6 << 20, Lost: 0.02}
	narrow := slow.Wire{MinRTT: 0.04, RTT: 0.04, Window: 70e3}
	closed := slow.Wire{MinRTT: 0.001, PeerWindow: 0.9}
	unread := slow.Wire{MinRTT: 0.001, Unread: 0.8}
	idle := slow.Latency{Connect: 0.04, Request: 0.042}
	queue := slow.Latency{Connect: 0.09, Request: 0.092}
	for name, tt := range map[string]struct {
		slow.Seen
		cause     slow.Cause
		detail    slow.Detail
		certainty cause.Certainty
	}{
		"nothing":   {},
		"too short": {Seen: slow.Seen{Size: giB, Fresh: []slow.Flow{{Rate: 1e9, Seconds: 0.05}}}},
		"disk": {Seen: slow.Seen{Size: giB, Fresh: flows(far, 1e6, 1.1e6), Again: flows(far, 9e6, 8e6), Many: many(1e6, 1e6, 1e6),
			Idle: idle, Busy: idle},
			cause: slow.ServerDisk, certainty: cause.Certain},
		"rate": {Seen: slow.Seen{Size: giB, Fresh: flows(far, 5e6, 5e6), Again: flows(far, 5e6, 5e6), Many: many(5e6, 5e6, 5e6),
			Idle: idle, Busy: queue},
			cause: slow.Line, detail: slow.Rate, certainty: cause.Certain},
		"loss": {Seen: slow.Seen{Size: giB, Fresh: flows(lossy, 1e6, 1.5e6), Again: flows(lossy, 2e6, 1e6), Many: many(3e6, 5e6,
			9e6), Idle: idle, Busy: idle},
			cause: slow.Line, detail: slow.Loss, certainty: cause.Likely},
		"window here": {Seen: slow.Seen{Size: giB, Fresh: flows(narrow, 1.6e6, 1.6e6), Many: many(3e6, 6e6, 12e6), Idle: idle,
			Busy: idle},
			cause: slow.Line, detail: slow.Window, certainty: cause.Certain},
		"limit of a stream on a lossy line": {Seen: slow.Seen{Size: giB, Fresh: flows(lossy, 1e6, 1e6), Many: many(2e6, 4e6, 8e6),
			Idle: idle, Busy: idle}, cause: slow.ServerLimit, detail: slow.Stream, certainty: cause.Likely},
		"limit that delays requests": {Seen: slow.Seen{Size: giB, Fresh: flows(far, 3.27e6, 3.28e6), Many: many(3e6, 3e6, 2.97e6),
			Idle: idle, Busy: slow.Latency{Connect: 0.04, Request: 0.2}}, cause: slow.ServerLimit, detail: slow.Client,
			certainty: cause.Likely},
		"disturbed": {Seen: slow.Seen{Size: giB, Fresh: flows(lossy, 16e6, 12e6), Many: many(5.7e6, 1.9e6, 13e6), Idle: idle, Busy: idle}},
		"full disk": {Seen: slow.Seen{Size: giB, Fresh: flows(far, 5e6, 5e6), Many: many(5e6, 5e6, 5e6), Idle: idle, Busy: queue,
			Host: slow.Host{Full: true}}, cause: slow.ThisHost, detail: slow.Disk, certainty: cause.Certain},
		"disk, busy host": {Seen: slow.Seen{Size: giB, Fresh: flows(far, 1e6, 1.1e6), Again: flows(far, 9e6, 8e6),
			Host: slow.Host{CPU: 1}, Idle: idle},
			cause: slow.ServerDisk, certainty: cause.Likely},
		"limit of a stream": {Seen: slow.Seen{Size: giB, Fresh: flows(far, 1.6e6, 1.6e6), Many: many(3.2e6, 6.3e6, 12.5e6),
			Idle: idle, Busy: idle},
			cause: slow.ServerLimit, detail: slow.Stream, certainty: cause.Likely},
		"a thread for each": {Seen: slow.Seen{Size: giB, Fresh: flows(slow.Wire{MinRTT: 1e-5}, 2e9, 2e9), Many: many(3.5e9, 5e9, 5e9)}},
		"limit of a client": {Seen: slow.Seen{Size: giB, Fresh: flows(far, 4e6, 4e6), Many: many(4e6, 4e6, 4e6), Idle: idle,
			Busy: idle},
			cause: slow.ServerLimit, detail: slow.Client, certainty: cause.Likely},
		"server": {Seen: slow.Seen{Size: giB, Fresh: flows(far, 4e6, 5e6), Many: many(4e6, 5e6, 5e6), Idle: idle,
			Busy: slow.Latency{Connect: 0.04, Request: 0.4}},
			cause: slow.ServerHost, detail: slow.CPU, certainty: cause.Likely},
		"disk of a write": {Seen: slow.Seen{Write: true, Size: giB, Fresh: flows(closed, 4e6), Many: many(4e6, 4.1e6, 4.4e6),
			Idle: slow.Latency{Connect: 0.001, Request: 0.002}, Busy: slow.Latency{Connect: 0.001, Request: 0.002}},
			cause: slow.ServerDisk, certainty: cause.Likely},
		"host of a write": {Seen: slow.Seen{Write: true, Size: giB, Fresh: flows(closed, 4e6), Many: many(4e6, 4.1e6, 4.4e6),
			Server: &slow.Server{CPU: 0.97, Core: 1, Disk: 0.2}}, cause: slow.ServerHost, detail: slow.CPU, certainty: cause.Certain},
		"disk here": {Seen: slow.Seen{Size: giB, Fresh: flows(far, 40e6), Kept: &flows(far, 4e6)[0], Idle: idle},
			cause: slow.ThisHost, detail: slow.Disk, certainty: cause.Certain},
		"cpu here": {Seen: slow.Seen{Size: giB, Fresh: flows(unread, 40e6), Host: slow.Host{CPU: 1}}, cause: slow.ThisHost,
			detail: slow.CPU, certainty: cause.Certain},
		"tls": {Seen: slow.Seen{Size: 1e4, Fresh: flows(far, 1e6), Setup: slow.Setup{Connect: 0.04, TLS: 2, Open: 0.05}, Idle: idle},
			cause: slow.TLS, certainty: cause.Certain},
		"small file": {Seen: slow.Seen{Size: 1e4, Fresh: flows(far, 1e6), Setup: slow.Setup{Connect: 0.04, TLS: 0.08,
			Open: 0.041}, Idle: idle},
			cause: slow.SmallFiles, certainty: cause.Likely},
		"checksum": {Seen: slow.Seen{Size: 1e6, Fresh: flows(far, 1e7), Setup: slow.Setup{Connect: 0.04, Open: 3}, Idle: idle,
			Other: &slow.Opening{Size: 1000, Seconds: 0.041}}, cause: slow.Checksum, certainty: cause.Certain},
		"queue": {Seen: slow.Seen{Size: 1e6, Fresh: flows(far, 1e7), Setup: slow.Setup{Connect: 0.04, Open: 3}, Idle: idle,
			Other: &slow.Opening{Size: 1000, Seconds: 3}}, cause: slow.ServerHost, detail: slow.Queue, certainty: cause.Certain},
		"large packets": {Seen: slow.Seen{Size: giB, Stuck: &slow.Stuck{Requests: true, Small: true}}, cause: slow.Line,
			detail: slow.MTU, certainty: cause.Certain},
		"silent":        {Seen: slow.Seen{Stuck: &slow.Stuck{}}, cause: slow.ServerHost, detail: slow.Queue, certainty: cause.Certain},
		"sends nothing": {Seen: slow.Seen{Stuck: &slow.Stuck{Requests: true}}},
		"ipv6": {Seen: slow.Seen{Size: giB, Fresh: flows(far, 1e9), Families: []slow.Address{{IPv6: true, Seconds: 5,
			Failed: "no connection"}, {Seconds: 0.04}}},
			cause: slow.Line, detail: slow.Family, certainty: cause.Certain},
	} {
		v := slow.Judge(&tt.Seen)
		if tt.certainty == "" {
			tt.certainty = cause.Unknown
		}
		if v.Cause != tt.cause || v.Detail != tt.detail || v.Certainty != tt.certainty {
			t.Errorf("%s: %+v", name, v)
		}
		if v.Cause != slow.Unknown && (v.Advice == "" || v.Share <= 0 || v.Share > 1) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}
