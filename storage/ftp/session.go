package ftp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"unicode"

	"weir/storage"
	"weir/storage/wireclient"
)

// maxInterim is the number of replies that may precede the final reply: GridFTP servers report the
// progress of a transfer every few seconds.
const maxInterim = 1 << 20

// A path represents a file below the target in commands.
type path struct {
	of   *service
	name string // below the target
}

func (p path) append(b []byte) []byte {
	b = append(b, p.of.root...)
	if p.name != "" || p.of.root == "" {
		b = append(b, '/')
	}
	return append(b, strings.Trim(p.name, "/")...)
}

// last returns the last part of the whole path.
func (p path) last() []byte {
	whole := p.append(nil)
	return whole[bytes.LastIndexByte(whole, '/')+1:]
}

// check refuses names that this server would change.
func (p path) check() error {
	if p.of == nil || !p.of.ascii.Load() {
		return nil
	}
	for _, text := range [...]string{p.of.root, p.name} {
		if strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) {
			return fmt.Errorf("%q: this server drops characters that are not ASCII: %w", text, errors.ErrUnsupported)
		}
	}
	return nil
}

// A control is the control connection of a session while an operation uses it. It connects and logs in, sends commands and reads replies.
type control struct {
	wireclient.Buffer // a command, or replies
	call              *wireclient.Call
	c                 *client
	reply             reply  // the last reply
	heard             bool   // bytes have arrived since the last command
	plain             []byte // protected replies that are decrypted and not read yet
	room              []byte // buffer in which plain begins
	token             []byte // buffer for a protected command or reply
}

// settle ends the session if there are replies without a command, and counts its bytes.
func (x *control) settle() {
	if x.unasked() { // the bytes that follow are not the next reply
		x.drop()
	}
	if c := x.c; c.conn != nil {
		x.call.Count(c.conn, &c.counted)
	}
}

// drop closes a session whose state is unknown.
func (x *control) drop() {
	x.Pos, x.End, x.plain = 0, 0, x.plain[:0]
	x.dropStreams()
	x.c.extended = false
	if x.c.conn == nil {
		return
	}
	x.call.Count(x.c.conn, &x.c.counted)
	_ = x.c.conn.Close() // the connection is gone in any case
	x.c.conn, x.c.channel, x.c.counted = nil, nil, 0
}

// dropStreams closes the data connections.
func (x *control) dropStreams() {
	if b := x.c.blocks; b != nil {
		x.call.Result.Wire += b.count()
		b.close()
		x.c.blocks = nil
	}
}

// join opens a session unless the client has kept a session. It returns whether the session was
// kept.
func (x *control) join() (kept bool, err error) {
	c := x.c
	if c.conn != nil && !c.conn.Quiet() { // closed meanwhile, or about to be closed
		x.drop()
	}
	if c.conn == nil {
		return false, x.connect()
	}
	if err := c.conn.Begin(x.call.Ctx, x.call.Deadline); err != nil {
		x.drop()
		return true, err
	}
	return true, nil
}

// connect opens a session.
//
//go:noinline
func (x *control) connect() error {
	s := x.c.s
	conn, err := s.dialer.Dial(x.call.Ctx, s.host, s.port, x.call.Deadline)
	if err != nil {
		return err
	}
	x.c.conn, x.c.counted = conn, 0
	x.call.Reach(storage.Connected)
	if err = x.logIn(); err != nil {
		x.drop()
		return loginRefused(err)
	}
	x.call.Reach(storage.Authenticated)
	return nil
}

// loginRefused returns err, the error of a login, without the errors that would be about the
// operation: a server that refuses the login with "500 OOPS: ..." or "550 TLS required" may support
// the operation and has not looked for its file.
func loginRefused(err error) error {
	if r, ok := errors.AsType[*replyError](err); ok && !errors.Is(r.is, storage.ErrBusy) {
		if errors.Is(r.is, errors.ErrUnsupported) || errors.Is(r.is, fs.ErrNotExist) {
			r.is = nil
		}
		r.is = errors.Join(storage.ErrLogin, r.is)
	}
	return err
}

// logIn reads the greeting, logs in and sets the type of all transfers.
func (x *control) logIn() error {
	if err := x.hear(); err != nil {
		return while("greeting", err)
	}
	if x.reply.code != 220 {
		return while("greeting", x.refusal())
	}
	if bytes.Contains(x.reply.text, []byte("GridFTP Server")) {
		x.c.s.ascii.Store(true)
	}
	if x.c.s.grid != nil {
		if err := x.authenticate(); err != nil {
			return while("log in", err)
		}
		if err := x.account(); err != nil {
			return while("log in", err)
		}
		return x.binary()
	}
	if err := x.say("USER ", x.c.s.user); err != nil {
		return while("log in", err)
	}
	if x.reply.code == 331 {
		if err := x.say("PASS ", x.c.s.pass); err != nil {
			return while("log in", err)
		}
	}
	switch code := x.reply.code; {
	case code == 331 || code == 332:
		return fmt.Errorf("log in: the server wants more than user and password: %d %s: %w", code, summary(string(x.reply.text)),
			fs.ErrPermission)
	case code/100 != 2:
		return while("log in", x.refusal())
	}
	return x.binary()
}

// binary sets the type of all transfers.
func (x *control) binary() error {
	if err := x.say("TYPE ", "I"); err != nil {
		return err
	}
	if x.reply.code/100 != 2 {
		return while("TYPE I", x.refusal())
	}
	return nil
}

// first sends the operation's first command (an empty verb: for passive mode) and reads the reply.
// If a kept session turns out to be closed, it is opened again, once, if the command changes
// nothing.
func (x *control) first(changes bool, verb string, p path) error {
	for {
		kept, err := x.join()
		if err != nil {
			return err
		}
		if verb == "" {
			err = x.say(x.passiveVerb(), "")
		} else {
			err = x.command(verb, p)
		}
		if err == nil || !kept || changes || x.heard || !wireclient.Closed(err) {
			return err
		}
	}
}

// passiveVerb returns EPSV for IPv6, whose addresses the reply to PASV cannot hold.
func (x *control) passiveVerb() string {
	if a := x.c.conn.Peer().Addr(); a.Is6() && !a.Is4In6() {
		return "EPSV"
	}
	return "PASV"
}

// command sends a command, with a path unless p is empty, and reads the final reply, or the first that
// announces a transfer. Without a reply the session is closed.
func (x *control) command(verb string, p path) error {
	if err := p.check(); err != nil {
		return err
	}
	x.Hold()
	b := append(x.Data[:0], verb...)
	if p.of != nil {
		b = p.append(b)
	}
	return x.send(b)
}

// say sends a command with a text.
func (x *control) say(verb, text string) error {
	x.Hold()
	return x.send(append(append(x.Data[:0], verb...), text...))
}

// askRange requests a part of a file with ERET P (GFD.20, 3.4).
func (x *control) askRange(p path, r storage.Range) error {
	if err := p.check(); err != nil {
		return err
	}
	x.Hold()
	b := append(x.Data[:0], "ERET P "...)
	b = append(strconv.AppendInt(b, r.Offset, 10), ' ')
	b = append(strconv.AppendInt(b, r.Length, 10), ' ')
	return x.send(p.append(b))
}

// restart sets the offset at which the next RETR begins.
func (x *control) restart(offset int64) error {
	x.Hold()
	return x.send(strconv.AppendInt(append(x.Data[:0], "REST "...), offset, 10))
}

func (x *control) send(b []byte) error {
	if x.unasked() { // a reply without a command
		x.drop()
		return wireclient.ProtocolError("a reply to no command")
	}
	x.heard = false
	b = append(b, '\r', '\n')
	var err error
	if ch := x.c.channel; ch != nil {
		x.token, err = ch.protect(x.token[:0], b)
		b = append(x.token, '\r', '\n')
	}
	if err == nil {
		_, err = x.c.conn.Write(b)
	}
	x.Release()
	if err == nil {
		err = x.hear()
	}
	if err != nil {
		x.drop()
	}
	return err
}

// hear reads replies until one is final (2yz and above), or announces a transfer (125, 150).
func (x *control) hear() error {
	return x.hearUntil(func(code int) bool { return code >= 200 || code == 125 || code == 150 })
}

// hearEnd reads replies until the transfer has ended.
func (x *control) hearEnd() error { return x.hearLast(func(code int) bool { return code >= 200 }) }

// hearBreak is hearEnd after the client has closed the data connection early. Pure-FTPd then ends
// with the code of its first reply: "150 0.001 seconds (measured here), 4.38 Gbytes per second".
func (x *control) hearBreak() error {
	return x.hearLast(func(code int) bool {
		return code >= 200 || bytes.Contains(x.reply.text, []byte("seconds (measured here)"))
	})
}

func (x *control) hearLast(last func(code int) bool) error {
	err := x.hearUntil(last)
	if err != nil {
		x.drop()
	}
	return err
}

func (x *control) hearUntil(last func(code int) bool) error {
	for range maxInterim {
		if err := x.hearOne(); err != nil {
			return err
		}
		if last(x.reply.code) {
			return nil
		}
	}
	return wireclient.ProtocolError("more than %d replies to one command", maxInterim)
}

// hearOne reads one reply.
func (x *control) hearOne() error {
	x.reply.reset()
	for {
		line, err := x.nextLine()
		if err != nil {
			return err
		}
		done, err := x.reply.add(line)
		if err != nil {
			return err
		}
		if done {
			x.Return()
			return nil
		}
	}
}

// unasked reports whether there are replies without a command.
func (x *control) unasked() bool { return x.Pos != x.End || len(x.plain) > 0 }

// nextLine returns the next line without its end, valid until the next call.
func (x *control) nextLine() ([]byte, error) {
	ch := x.c.channel
	if ch == nil {
		return x.clearLine()
	}
	for {
		if line, rest, ok := bytes.Cut(x.plain, []byte{'\n'}); ok {
			x.plain = rest
			return bytes.TrimSuffix(line, []byte{'\r'}), nil
		}
		line, err := x.clearLine()
		if err != nil {
			return nil, err
		}
		code, text, ok := splitCode(line)
		if ok && code == 421 { // the server closes the connection, which needs no protection
			return line, nil
		}
		if !ok || code < 631 || code > 633 {
			return nil, wireclient.ProtocolError("a reply without protection: %q", clip(line, 60))
		}
		if x.token, err = appendToken(x.token[:0], text); err != nil {
			return nil, err
		}
		if x.plain, err = ch.unprotect(append(x.room[:0], x.plain...), x.token); err != nil {
			return nil, err
		}
		x.room = x.plain[:0]
		x.plain = bytes.TrimRight(x.plain, "\x00")
		if n := len(x.plain); n == 0 || x.plain[n-1] != '\n' {
			x.plain = append(x.plain, '\n')
		}
	}
}

// clearLine returns the next line as it was received.
func (x *control) clearLine() ([]byte, error) {
	for searched := x.Pos; ; {
		if i := bytes.IndexByte(x.Data[searched:x.End], '\n'); i >= 0 {
			line := x.Data[x.Pos : searched+i]
			x.Pos = searched + i + 1
			return bytes.TrimSuffix(line, []byte{'\r'}), nil
		}
		if x.Pos > 0 {
			x.End = copy(x.Data, x.Data[x.Pos:x.End])
			x.Pos = 0
		}
		searched = x.End
		if x.End > 0 && x.End == len(x.Data) {
			return nil, wireclient.ProtocolError("a reply with a line of more than %d bytes", len(x.Data))
		}
		n, err := x.c.conn.ReadLate(&x.Buffer)
		x.End += n
		x.heard = x.heard || n > 0
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("closed before the reply: %w", io.EOF)
		}
		if err != nil {
			return nil, err
		}
	}
}
