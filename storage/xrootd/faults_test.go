package xrootd

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strings"
	"syscall"
	"time"

	"weir/storage"
)

func faultsOfLogin() map[string]fault {
	const session = "0123456789abcdef"
	hello := answerOf(0, stOK, number(protocolVersion)+number(1))
	flags := func(n uint32) string { return hello + answerOf(0, stOK, number(protocolVersion)+number(n)) }
	return map[string]fault{
		"silent":         {greet: func(c *talk) bool { return c.hear() }, class: storage.Timeout},
		"hangs up":       {greet: speech(""), class: storage.Reset},
		"resets":         {greet: func(c *talk) bool { return reset(c, query{}) }, class: storage.Reset},
		"SSH":            {greet: speech("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"), words: "is this an XRootD server?"},
		"HTTP":           {greet: speech("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), words: "is this an XRootD server?"},
		"TLS":            {greet: speech("\x15\x03\x01\x00\x02\x02\x46"), class: storage.Reset},
		"zeros":          {greet: speech(strings.Repeat("\x00", 4096)), words: "is this an XRootD server?"},
		"hello too long": {greet: speech(answerOf(0, stOK, strings.Repeat("x", 100))), words: "100 bytes"},
		"hello of 2 GiB": {greet: speech("\x00\x00\x00\x00\x7f\xff\xff\xff"), words: "2147483647"},
		"hello of other": {greet: speech(answerOf(7, stOK, "12345678")), words: "stream 7"},
		"hello waits":    {greet: speech(answerOf(0, stWait, number(1)))},
		"no protocol":    {greet: speech(hello + answerOf(0, stOK, ""))},
		"protocol refused": {greet: speech(hello + answerOf(0, stError, number(3010)+"not you\x00")), class: storage.Denied,
			words: "not you"},
		"protocol redirects": {greet: speech(hello + answerOf(0, stRedirect, number(1)+"x"))},
		"wants data signed": {greet: speech(hello + answerOf(0, stOK, number(protocolVersion)+number(1)+"S\x00\x00\x01\x03\x00")),
			class: storage.Other, err: errUnsupported(), words: "signed"},
		"signing, cut short": {greet: speech(hello + answerOf(0, stOK, number(protocolVersion)+number(1)+"S\x00\x00\x00\x02\x05xy")),
			words: "2 of 10 bytes"},
		"TLS, then none":   {greet: speech(flags(flagServer|flagGoToTLS|flagHasTLS) + strings.Repeat("no TLS ", 100)), words: ""},
		"login refused":    {greet: entry(stError, number(3010)+"go away\x00"), class: storage.Denied, words: "go away (kXR_NotAuthorized)"},
		"login of 3 bytes": {greet: entry(stOK, "abc"), words: "3 bytes"},
		"login redirects":  {greet: entry(stRedirect, number(1094)+"elsewhere"), words: "login"},
		"login says more":  {greet: entry(stAuthMore, ""), words: "login"},
		"login waits":      {greet: entry(stWait, number(3600)), class: storage.Busy, words: "1h0m0s"},
		"login and unknown": {greet: entry(stOK, session+"&P=pwd,v:1,c:2&P=sss,0"), class: storage.Denied,
			words: "the server takes pwd or sss"},
		"login and gsi":       {greet: entry(stOK, session+"&P=gsi,v:1,c:ssl,ca:1234"), class: storage.Denied, words: "auth.method: x509"},
		"login and ztn":       {greet: entry(stOK, session+"&P=ztn,v:0"), class: storage.Denied, words: "auth.method: token"},
		"proof refused":       {greet: proof(stError, number(3030)+"who are you?\x00"), class: storage.Denied, words: "authentication unix"},
		"proof and more":      {greet: proof(stAuthMore, "unix\x00tell me more"), class: storage.Other, words: "authentication unix"},
		"proof and status":    {greet: proof(stStatus, ""), words: "kXR_auth"},
		"proof and silence":   {greet: func(c *talk) bool { return c.hello() && c.offers() && c.hear() }, class: storage.Timeout},
		"a stray after login": {greet: after(answerOf(9, stOK, "surprise")), words: "stream 9"},
		"attn after login":    {greet: after(answerOf(0, stAttn, "abc")), words: "attention"},
		"login of 2 GiB": {greet: func(c *talk) bool { return c.hello() && c.raw("\x00\x01\x00\x00\x80\x00\x00\x00") && c.hear() },
			words: "-2147483648"},
		"login of 1 GiB": {greet: func(c *talk) bool { return c.hello() && c.raw("\x00\x01\x00\x00\x40\x00\x00\x00") && c.hear() },
			words: "1048576"},
		"login status unknown": {greet: entry(4999, ""), words: "4999"},
	}
}

// hear reads until the client has closed the connection.
func (c *talk) hear() bool {
	for {
		if _, err := c.Read(make([]byte, 4096)); err != nil {
			return false
		}
	}
}

// offers responds to the login and requires authentication.
func (c *talk) offers() bool {
	q, err := c.ask()
	return err == nil && c.say(q, stOK, "0123456789abcdef&P=unix")
}

// proof responds to the client's credentials.
func proof(status uint16, text string) func(*talk) bool {
	return func(c *talk) bool {
		if !c.hello() || !c.offers() {
			return false
		}
		q, err := c.ask()
		return err == nil && q.code == rqAuth && c.say(q, status, text) && c.hear()
	}
}

func faultsOfAnswers() map[string]fault {
	raw := func(text string) func(*talk, query) bool {
		return say(rqStat, func(c *talk, _ query) bool { return c.raw(text) && c.hear() })
	}
	at := func(f fault) fault { f.kind = storage.Stat; return f }
	return map[string]fault{
		"stat: silence":      at(fault{answer: silence, class: storage.Timeout}),
		"stat: hangs up":     at(fault{answer: func(*talk, query) bool { return false }, class: storage.Reset}),
		"stat: resets":       at(fault{answer: reset, class: storage.Reset}),
		"stat: 2 GiB":        at(fault{answer: raw("\x00\x01\x00\x00\x7f\xff\xff\xff")}),
		"stat: negative":     at(fault{answer: raw("\x00\x01\x00\x00\xff\xff\xff\xff"), words: "-1"}),
		"stat: 1 GiB":        at(fault{answer: raw("\x00\x01\x00\x00\x40\x00\x00\x00"), words: "1048576"}),
		"stat: other stream": at(fault{answer: raw(answerOf(2, stOK, "1 2 3 4")), words: "stream 2"}),
		"stat: status 1":     at(fault{answer: body(rqStat, 1, ""), words: "status 1"}),
		"stat: status 4008":  at(fault{answer: body(rqStat, 4008, ""), words: "status 4008"}),
		"stat: status 65535": at(fault{answer: body(rqStat, 65535, ""), words: "status 65535"}),
		"stat: authmore":     at(fault{answer: body(rqStat, stAuthMore, ""), words: "kXR_stat"}),
		"stat: status":       at(fault{answer: body(rqStat, stStatus, ""), words: "kXR_stat"}),
		"stat: error of 2":   at(fault{answer: body(rqStat, stError, "ab"), words: "2 bytes"}),
		"stat: error unknown": at(fault{answer: body(rqStat, stError, number(1)+"odd\x00"), class: storage.ServerFailed, err: errIO(),
			words: "odd (kXR error 1)"}),
		"stat: error negative": at(fault{answer: body(rqStat, stError, number(-5)+"odd\x00"), class: storage.ServerFailed, err: errIO(),
			words: "odd (kXR error -5)"}),
		"stat: error and dirt": at(fault{answer: body(rqStat, stError, number(3011)+"\x1b[31mred\r\n\xff"+strings.Repeat("x", 5000)),
			class: storage.NotFound, words: " [31mred"}),
		"stat: error, no words": at(fault{answer: body(rqStat, stError, number(3011)), class: storage.NotFound, words: "kXR_NotFound"}),
		"stat: nothing":         at(fault{answer: body(rqStat, stOK, "")}),
		"stat: words":           at(fault{answer: body(rqStat, stOK, "one two three four")}),
		"stat: three numbers":   at(fault{answer: body(rqStat, stOK, "1 2 3")}),
		"stat: negative size":   at(fault{answer: body(rqStat, stOK, "1 -2 3 4")}),
		"stat: huge size":       at(fault{answer: body(rqStat, stOK, "1 99999999999999999999 3 4")}),
		"stat: zeros":           at(fault{answer: body(rqStat, stOK, strings.Repeat("\x00", 100))}),
		"stat: attn of 3":       at(fault{answer: raw(answerOf(0, stAttn, "abc")), words: "attention"}),
		"stat: attn and lie": at(fault{answer: raw(answerOf(0, stAttn, number(attnResponse)+number(0)+answerOf(1, stOK, "12345")[:10])),
			words: "attention"}),
		"stat: attn in attn": at(fault{answer: raw(answerOf(0, stAttn, number(attnResponse)+number(0)+answerOf(1, stAttn, ""))),
			words: "attention"}),
		"stat: attn of others":  at(fault{answer: raw(later(5, stOK, "1 2 3 4")), words: "stream 5"}),
		"stat: huge attn":       at(fault{answer: raw("\x00\x00\x0f\xa1\x3f\xff\xff\xff" + strings.Repeat("\x00", 16)), words: "not asked for"}),
		"stat: attn, then none": at(fault{answer: raw(answerOf(0, stAttn, number(5007)+"hello, clients!!!")), class: storage.Timeout}),
		"stat: more for ever": at(fault{answer: say(rqStat, func(c *talk, q query) bool {
			for c.say(q, stOKSoFar, strings.Repeat("x", 1<<20)) {
			}
			return false
		}), words: "1048576"}),
		"stat: none for ever": at(fault{answer: say(rqStat, func(c *talk, q query) bool {
			for c.raw(strings.Repeat(answerOf(q.stream, stOKSoFar, ""), 1000)) {
			}
			return false
		})}),
	}
}

func faultsOfRedirects() map[string]fault {
	to := func(port int, text string) func(*talk, query) bool {
		return body(rqOpen, stRedirect, number(port)+text)
	}
	return map[string]fault{
		"redirect of 3 bytes":      {answer: body(rqOpen, stRedirect, "abc"), words: "3 bytes"},
		"redirect to no host":      {answer: to(1094, "\x00"), words: "redirect"},
		"redirect to brackets":     {answer: to(1094, "[]"), words: "redirect"},
		"redirect to dirt":         {answer: to(1094, "\x01\x02 \xff"), words: "redirect"},
		"redirect to a path":       {answer: to(1094, "/etc/passwd"), words: "redirect"},
		"redirect to port 70000":   {answer: to(70000, "127.0.0.1"), words: "port 70000"},
		"redirect to no URL":       {answer: to(-1, "hello"), words: "hello"},
		"redirect to http":         {answer: to(-1, "http://127.0.0.1:80/x"), words: "http"},
		"redirect to a file":       {answer: to(-1, "file://localhost/etc/passwd"), words: "file"},
		"redirect to broken URL":   {answer: to(-1, "root://[::1/%zz"), words: "redirect"},
		"redirect to URL, port 0":  {answer: to(-1, "root://127.0.0.1:0//x"), words: "port"},
		"redirect with huge words": {answer: to(1094, "127.0.0.1?"+strings.Repeat("x", 64<<10)), words: "redirect"},
		"redirect with line ends":  {answer: to(1094, "127.0.0.1?a=b\nc"), words: "redirect"},
		"redirect to itself": {answer: say(rqOpen, func(c *talk, q query) bool { return c.send(q, c.peer, "?a=b") }),
			words: "more than 16 redirects"},
		"redirect and hang up": {answer: say(rqOpen, func(c *talk, q query) bool {
			_ = c.send(q, c.peer, "") // the client may have closed the connection
			return false
		}), words: "more than 16 redirects"},
	}
}

func faultsOfWaits() map[string]fault {
	wait := func(code uint16, seconds int) func(*talk, query) bool {
		return body(code, stWait, number(seconds)+"staging\x00")
	}
	long := func(op *storage.Op) { op.Timeout = 0 }
	at := func(f fault) fault { f.kind = storage.Stat; return f }
	return map[string]fault{
		"wait an hour":                 at(fault{answer: wait(rqStat, 3600), class: storage.Busy, words: "staging"}),
		"wait an hour without timeout": at(fault{answer: wait(rqStat, 3600), change: long, class: storage.Busy, words: "1h0m0s"}),
		"wait for ever":                at(fault{answer: wait(rqStat, 1<<31-1), change: long, class: storage.Busy}),
		"wait of 2 bytes":              at(fault{answer: body(rqStat, stWait, "ab"), words: "2 bytes"}),
		"wait no time": at(fault{answer: wait(rqStat, 0), class: storage.Busy,
			change: func(op *storage.Op) { op.Timeout = 150 * 1e6 }}),
		"wait less than no time": at(fault{answer: wait(rqStat, -1), class: storage.Busy,
			change: func(op *storage.Op) { op.Timeout = 150 * 1e6 }}),
		"wait a second": at(fault{answer: wait(rqStat, 1), change: func(op *storage.Op) { op.Timeout = 1500 * 1e6 },
			class: storage.Busy}),
		"waitresp, then none": at(fault{answer: body(rqStat, stWaitResp, number(5)), class: storage.Timeout}),
		"waitresp, then closed": at(fault{answer: say(rqStat, func(c *talk, q query) bool { _ = c.say(q, stWaitResp, number(5)); return false }),
			class: storage.Reset}),
		"waitresp without end": at(fault{answer: say(rqStat, func(c *talk, q query) bool {
			for c.raw(strings.Repeat(answerOf(q.stream, stWaitResp, number(1)), 1000)) {
			}
			return false
		}), class: storage.Timeout}),
		"waitresp, huge": at(fault{answer: say(rqStat, func(c *talk, q query) bool {
			return c.raw("\x00\x01\x0f\xa6\x20\x00\x00\x00") &&
				c.hear()
		}), words: "not asked for"}),
		"waitresp, then garbage": at(fault{answer: say(rqStat, func(c *talk, q query) bool {
			return c.say(q, stWaitResp, "") && c.raw(later(q.stream, stOK, "garbage"))
		})}),
		"waitresp, then waitresp": at(fault{answer: say(rqStat, func(c *talk, q query) bool {
			return c.say(q, stWaitResp, "") &&
				c.raw(later(q.stream, stWaitResp, ""))
		}), words: "kXR_waitresp"}),
		"open waits":         {answer: wait(rqOpen, 3600), class: storage.Busy},
		"read waits":         {answer: wait(rqPgread, 3600), class: storage.Busy},
		"read waits shortly": {answer: wait(rqPgread, 0), class: storage.Busy, change: func(op *storage.Op) { op.Timeout = 150 * 1e6 }},
		"vector waits":       {answer: wait(rqReadv, 3600), change: ranged, class: storage.Busy},
		"write waits":        {kind: storage.Write, answer: wait(rqPgwrite, 1), class: storage.Busy},
		"close waits":        {answer: wait(rqClose, 3600), class: storage.Busy},
	}
}

func faultsOfReads() map[string]fault {
	at := func(f fault) fault { f.change = plainly; return f }
	more := func(status uint16, n int) func(*talk, query) bool {
		return say(rqRead, func(c *talk, q query) bool { return c.say(q, status, strings.Repeat("x", n)) })
	}
	opened := func(text string) func(*talk, query) bool { return body(rqOpen, stOK, text) }
	faults := map[string]fault{
		"open: 3 bytes":       at(fault{answer: opened("abc"), words: "3 bytes"}),
		"open: no state":      at(fault{answer: opened("hndl12345678garbage")}),
		"open: negative size": at(fault{answer: opened("hndl123456781 -5 0 0\x00")}),
		"open: old, no state": at(fault{answer: func(c *talk, q query) bool { return c.say(q, stOK, "hndl") }}),
		"open: too small": {answer: opened("hndl123456781 5 0 0\x00"), change: func(op *storage.Op) { op.Size = 6 }, class: storage.Sized,
			err: storage.ErrShort, words: "5 bytes, not the 6"},
		"open: too large": {answer: opened("hndl123456781 7 0 0\x00"), change: func(op *storage.Op) { op.Size = 6 }, class: storage.Sized,
			err: storage.ErrSize, words: "7 bytes, not the 6"},
		"open: huge file": at(fault{answer: opened(fmt.Sprintf("hndl123456781 %d 0 0\x00", int64(1<<63-1))), class: storage.Short}),
		"read: nothing":   at(fault{answer: more(stOK, 0), class: storage.Short, err: storage.ErrShort}),
		"read: short":     at(fault{answer: more(stOK, fileSize-1), class: storage.Short, err: storage.ErrShort}),
		"read: too much":  at(fault{answer: more(stOK, fileSize+1), words: "10001 bytes"}),
		"read: no end": at(fault{answer: say(rqRead, func(c *talk, q query) bool { return c.say(q, stOKSoFar, string(c.peer.part(q))) }),
			class: storage.Timeout}),
		"read: more than the end": at(fault{answer: say(rqRead, func(c *talk, q query) bool {
			return c.say(q, stOKSoFar, string(c.peer.part(q))) && c.say(q, stOK, "x")
		})}),
		"read: nothing for ever": at(fault{answer: say(rqRead, func(c *talk, q query) bool {
			for c.raw(strings.Repeat(answerOf(q.stream, stOKSoFar, ""), 1000)) {
			}
			return false
		})}),
		"read: other stream": at(fault{answer: say(rqRead, func(c *talk, q query) bool { return c.raw(answerOf(q.stream+9, stOK, "x")) }),
			words: "stream"}),
		"read: stream 0": at(fault{answer: say(rqRead, func(c *talk, q query) bool { return c.raw(answerOf(0, stOK, "x")) }),
			words: "stream 0"}),
		"read: stream 65535": at(fault{answer: say(rqRead, func(c *talk, q query) bool { return c.raw(answerOf(65535, stOK, "x")) }),
			words: "stream 65535"}),
		"read: answered twice": at(fault{answer: say(rqRead, func(c *talk, q query) bool {
			return c.good(q) && c.say(q, stError, number(3000)+"late")
		}), class: storage.Other}),
		"read: redirect": at(fault{answer: body(rqRead, stRedirect, number(1)+"x"), words: "redirect"}),
		"read: authmore": at(fault{answer: body(rqRead, stAuthMore, ""), words: "kXR_read"}),
		"read: pages": at(fault{answer: say(rqRead, func(c *talk, q query) bool {
			return c.raw(pagesAt(q.stream, c.peer.part(q), 0, false).text())
		})}),
		"read: refused": at(fault{answer: body(rqRead, stError, number(3007)+"disk is gone\x00"), class: storage.ServerFailed, err: errIO(),
			words: "disk is gone (kXR_IOError)"}),
		"read: 1 GiB": at(fault{answer: say(rqRead, func(c *talk, q query) bool {
			return c.raw("\x00\x01\x00\x00\x40\x00\x00\x00") &&
				c.hear()
		}), words: "1073741824"}),
		"close: refused": at(fault{answer: body(rqClose, stError, number(3007)+"flush failed\x00"), class: storage.ServerFailed, err: errIO(),
			words: "flush failed"}),
		"close: hangs up": at(fault{answer: say(rqClose, func(*talk, query) bool { return false }), class: storage.Reset}),
		"close: silence":  at(fault{answer: say(rqClose, silence), class: storage.Timeout}),
	}
	faults["read: cut"] = at(fault{answer: say(rqRead, func(c *talk, q query) bool {
		_ = c.raw(answerOf(q.stream, stOK, string(c.peer.part(q)))[:5000])
		return false
	}), class: storage.Short, err: storage.ErrShort})
	return faults
}

func faultsOfPages() map[string]fault {
	page := func(change func(*sheet)) func(*talk, query) bool {
		return say(rqPgread, func(c *talk, q query) bool {
			s := pagesAt(q.stream, c.peer.part(q), q.offset(), false)
			change(&s)
			return c.raw(s.text())
		})
	}
	broken := func(at int) func(*sheet) {
		return func(s *sheet) {
			b := []byte(s.data)
			b[at] ^= 1
			s.data = string(b)
		}
	}
	faults := map[string]fault{
		"pages: wrong head":      {answer: page(func(s *sheet) { s.wrong = 1 }), class: storage.Checksummed, words: "CRC32C"},
		"pages: other request":   {answer: page(func(s *sheet) { s.request = rqPgwrite - firstRequest }), words: "kXR_pgwrite"},
		"pages: unknown request": {answer: page(func(s *sheet) { s.request = 255 })},
		"pages: progress":        {answer: page(func(s *sheet) { s.kind = 2 })},
		"pages: other offset":    {answer: page(func(s *sheet) { s.offset += 4096 }), words: "at 4096"},
		"pages: negative offset": {answer: page(func(s *sheet) { s.offset = -4096 })},
		"pages: negative size":   {answer: page(func(s *sheet) { s.size = -1 })},
		"pages: 2 GiB":           {answer: page(func(s *sheet) { s.size = 1<<31 - 1 })},
		"pages: a byte more":     {answer: page(func(s *sheet) { s.size++; s.data += "x" })},
		"pages: more than wanted": {answer: say(rqPgread, func(c *talk, q query) bool {
			return c.raw(pagesAt(q.stream, made(fileSize+1), 0, false).text())
		})},
		"pages: only a checksum": {answer: page(func(s *sheet) { s.size, s.data = 4, "abcd" })},
		"pages: three bytes":     {answer: page(func(s *sheet) { s.size, s.data = 3, "abc" })},
		"pages: none":            {answer: page(func(s *sheet) { s.size, s.data = 0, "" }), class: storage.Short, err: storage.ErrShort},
		"pages: none for ever": {answer: say(rqPgread, func(c *talk, q query) bool {
			s := sheet{stream: q.stream, request: rqPgread - firstRequest, kind: partialStatus}.text()
			for c.raw(strings.Repeat(s, 1000)) {
			}
			return false
		})},
		"pages: short": {answer: page(func(s *sheet) { *s = pagesAt(s.stream, made(fileSize)[:5000], 0, false) }), class: storage.Short,
			err: storage.ErrShort},
		"pages: no end": {answer: page(func(s *sheet) { s.kind = partialStatus }), class: storage.Timeout},
		"pages: plain instead": {answer: say(rqPgread, func(c *talk, q query) bool { return c.say(q, stOK, string(c.peer.part(q))) }),
			words: "kXR_pgread"},
		"pages: status of 10":   {answer: body(rqPgread, stStatus, "0123456789"), words: "10 bytes"},
		"pages: status of 8000": {answer: body(rqPgread, stStatus, strings.Repeat("x", 8000)), words: "8000 bytes"},
		"pages: inner stream": {answer: say(rqPgread, func(c *talk, q query) bool {
			s := pagesAt(q.stream+1, c.peer.part(q), 0, false).text()
			return c.raw("\x00\x01" + s[2:])
		})},
		"pages: refused": {answer: body(rqPgread, stError, number(3019)+"rotten\x00"), class: storage.Checksummed, words: "rotten"},
		"pages: cut": {answer: say(rqPgread, func(c *talk, q query) bool {
			_ = c.raw(pagesAt(q.stream, c.peer.part(q), 0, false).text()[:5000])
			return false
		}), class: storage.Short, err: storage.ErrShort},
	}
	for name, f := range maps.Clone(faults) { // and with every page verified
		f.change = summed
		faults[name+", summed"] = f
	}
	for _, at := range []int{0, 3, 4, 4099, 4100, 4104, fileSize + 11} {
		faults[fmt.Sprintf("pages: byte %d wrong", at)] = fault{answer: page(broken(at)), change: summed, class: storage.Checksummed,
			err: storage.ErrChecksum, words: "page"}
	}
	return faults
}

func faultsOfVectors() map[string]fault {
	vector := func(change func(string) string) func(*talk, query) bool {
		return say(rqReadv, func(c *talk, q query) bool { return c.say(q, stOK, change(c.peer.vector(q))) })
	}
	put := func(at int, with string) func(string) string {
		return func(s string) string { return s[:at] + with + s[at+len(with):] }
	}
	faults := map[string]fault{
		"vector: nothing":      {answer: vector(func(string) string { return "" }), class: storage.Short, err: storage.ErrShort},
		"vector: one part":     {answer: vector(func(s string) string { return s[:26] }), class: storage.Short, err: storage.ErrShort},
		"vector: half a part":  {answer: vector(func(s string) string { return s[:20] }), class: storage.Short, err: storage.ErrShort},
		"vector: half a head":  {answer: vector(func(s string) string { return s[:10] })},
		"vector: a part more":  {answer: vector(func(s string) string { return s + s[:26] })},
		"vector: a byte more":  {answer: vector(func(s string) string { return s + "x" })},
		"vector: other length": {answer: vector(put(4, number(11)))},
		"vector: huge length":  {answer: vector(put(4, number(-1)))},
		"vector: other offset": {answer: vector(put(12, number(99)))},
		"vector: other order":  {answer: vector(func(s string) string { return s[26:] + s[:26] })},
		"vector: other stream": {answer: say(rqReadv, func(c *talk, q query) bool { return c.raw(answerOf(7, stOK, "")) }), words: "stream 7"},
		"vector: redirect":     {answer: body(rqReadv, stRedirect, number(1)+"x")},
		"vector: refused": {answer: body(rqReadv, stError, number(3005)+"no\x00"), class: storage.ServerFailed, err: errIO(),
			words: "no (kXR_FSError)"},
		"vector: status":       {answer: body(rqReadv, stStatus, "")},
		"vector: past the end": {answer: vector(func(s string) string { return s }), change: nil, class: storage.Short},
		"vector: parts for ever": {answer: say(rqReadv, func(c *talk, q query) bool {
			for c.raw(strings.Repeat(answerOf(q.stream, stOKSoFar, ""), 1000)) {
			}
			return false
		})},
	}
	for name, f := range maps.Clone(faults) {
		f.change = ranged
		if strings.HasSuffix(name, "past the end") {
			f.change = func(op *storage.Op) { op.Ranges = []storage.Range{{Length: 1}, {Offset: 9_999, Length: 2}} }
		}
		faults[name] = f
		if f.class == storage.None {
			change := f.change
			f.change = func(op *storage.Op) { change(op); summed(op) }
			faults[name+", summed"] = f
		}
	}
	return faults
}

func faultsOfNames() map[string]fault {
	list := func(text string) fault { return fault{kind: storage.List, answer: body(rqDirlist, stOK, text)} }
	located := func(text string) fault { return fault{kind: storage.Locate, answer: body(rqLocate, stOK, text)} }
	sum := func(text string) fault { return fault{kind: storage.Checksum, answer: body(rqQuery, stOK, text)} }
	return map[string]fault{
		"list: slash":            list("a\nb/c\nd"),
		"list: absolute":         list("/etc/passwd"),
		"list: stat, slash":      list(".\n0 0 0 0\n../x\n1 2 16 3"),
		"list: stat, dirt":       list(".\n0 0 0 0\na\n1 2"),
		"list: stat, odd lines":  list(".\n0 0 0 0\na\n1 2 3 4\nb"),
		"list: zero in a name":   list("a\x00b\nc"),
		"list: empty name":       list("a\n\nb"),
		"list: stat, empty name": list(".\n0 0 0 0\na\n1 2 3 4\n\n1 2 3 4"),
		"list: long name":        list(strings.Repeat("x", 5000)),
		"list: too many":         list(strings.Repeat("x\n", 1<<21)),
		"list: cut off": {kind: storage.List, answer: say(rqDirlist, func(c *talk, q query) bool {
			_ = c.say(q, stOKSoFar, ".\n0 0 0 0\na\n1 2 16 3\n") // and no more
			return false
		}), class: storage.Reset},
		"list: cut off in a part": {kind: storage.List, answer: say(rqDirlist, func(c *talk, q query) bool {
			_ = c.say(q, stOKSoFar, ".\n0 0 0 0\na\n1 2 16 3\n")
			_ = c.raw(string([]byte{byte(q.stream >> 8), byte(q.stream), 0, 0, 0, 0, 0, 100}) + "b\n")
			return false
		}), class: storage.Reset},
		"list: refused": {kind: storage.List, answer: body(rqDirlist, stError, number(3011)+"no such folder\x00"),
			class: storage.NotFound},
		"locate: letter":         located("Xr127.0.0.1:1094"),
		"locate: short":          located("S"),
		"locate: no port":        located("Sr127.0.0.1"),
		"locate: port 0":         located("Sr127.0.0.1:0"),
		"locate: port 70000":     located("Sr127.0.0.1:70000"),
		"locate: dirt":           located("Sr\x01\x02:1094"),
		"locate: brackets":       located("Sr[::1:1094"),
		"locate: no host":        located("Sr:1094"),
		"locate: too many":       located(strings.Repeat("Sr127.0.0.1:1094 ", 100_000)),
		"list: behind a manager": {kind: storage.List, flags: flagManager, answer: body(rqLocate, stOK, "Sr\x00\x01:5"), words: "location"},
		"sum: nothing":           sum(""),
		"sum: other":             sum("md5 12345678"),
		"sum: other, no time": {kind: storage.Checksum, answer: body(rqQuery, stOK, "md5 12345678\x00"),
			change: func(op *storage.Op) { op.Timeout = 100 * time.Millisecond }},
		"sum: no number": sum("adler32 hello"),
		"sum: too long":  sum("adler32 123456789"),
		"sum: one word":  sum("adler32"),
		"sum: not known": {kind: storage.Checksum, answer: body(rqQuery, stError, number(3013)+"no\x00"), class: storage.Other,
			err: errUnsupported()},
		"mkdir: there": {kind: storage.Mkdir, answer: body(rqMkdir, stError, number(3018)+"there\x00"), class: storage.Other,
			err: fs.ErrExist},
		"remove: hangs up": {kind: storage.Remove, answer: func(*talk, query) bool { return false }, class: storage.Reset},
		"move: refused":    {kind: storage.Move, answer: body(rqMv, stError, number(3025)+"read only\x00"), class: storage.Denied},
		"ping: garbage":    {kind: storage.Ping, answer: body(rqPing, 17, ""), words: "status 17"},
		"ping: timed out": {kind: storage.Ping, answer: body(rqPing, stError, number(3034)+"slow"), class: storage.Timeout,
			err: os.ErrDeadlineExceeded},
		"mkdir: redirects itself": {kind: storage.Mkdir, answer: say(rqMkdir, func(c *talk, q query) bool { return c.send(q, c.peer, "") }),
			words: "redirects"},
	}
}

func faultsOfWrites() map[string]fault {
	written := func(change func(*sheet)) func(*talk, query) bool {
		return say(rqPgwrite, func(c *talk, q query) bool {
			s := sheet{stream: q.stream, request: rqPgwrite - firstRequest, offset: q.offset()}
			change(&s)
			return c.raw(s.text())
		})
	}
	faults := map[string]fault{
		"write: refused": {answer: body(rqPgwrite, stError, number(3009)+"disk is full\x00"), class: storage.ServerFailed, err: errFull(),
			words: "disk is full (kXR_NoSpace)"},
		"write: exists":   {answer: body(rqOpen, stError, number(3018)+"there\x00"), class: storage.Other, err: fs.ErrExist},
		"write: hangs up": {answer: say(rqPgwrite, func(*talk, query) bool { return false }), class: storage.Reset},
		"write: silence":  {answer: say(rqPgwrite, silence), class: storage.Timeout},
		"write: damaged": {answer: written(func(s *sheet) { s.size, s.data = 8, "12345678" }), class: storage.Checksummed,
			words: "damaged"},
		"write: wrong head":    {answer: written(func(s *sheet) { s.wrong = 1 }), class: storage.Checksummed},
		"write: other offset":  {answer: written(func(s *sheet) { s.offset = 5 })},
		"write: other request": {answer: written(func(s *sheet) { s.request = rqPgread - firstRequest })},
		"write: other stream": {answer: say(rqPgwrite, func(c *talk, q query) bool { return c.raw(answerOf(77, stOK, "")) }),
			words: "stream 77"},
		"write: status of 3":    {answer: body(rqPgwrite, stStatus, "abc")},
		"write: redirect":       {answer: body(rqPgwrite, stRedirect, number(1)+"x"), words: "redirect"},
		"write: close fails":    {answer: body(rqClose, stError, number(3016)+"no space left\x00"), class: storage.Other, err: fs.ErrInvalid},
		"write: answered early": {answer: say(rqOpen, func(c *talk, q query) bool { return c.good(q) && c.say(q, stOK, "surprise") })},
		"write: huge": {answer: say(rqPgwrite, func(c *talk, q query) bool {
			return c.raw("\x00\x01\x00\x00\x3f\xff\xff\xff") && c.hear()
		})},
	}
	for name, f := range maps.Clone(faults) {
		f.kind = storage.Write
		faults[name] = f
	}
	return faults
}

func errUnsupported() error { return errors.ErrUnsupported }
func errIO() error          { return syscall.EIO }
func errFull() error        { return syscall.ENOSPC }
