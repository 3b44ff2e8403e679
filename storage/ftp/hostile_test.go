package ftp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/storage"
	"weir/storage/storagetest"
)

// An impostor sends a reply by the verb of the command; commands without an entry succeed. In a
// reply, PORT stands for its passive port in the format of PASV.
type impostor struct {
	answers map[string]string
	data    func(d net.Conn) // uses a data connection; nil: nothing is sent
	active  func(d net.Conn) // the same with a connection that the impostor makes to the client
}

// start returns the impostor's address. It is stopped at the end of the test.
func (i impostor) start(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	passive, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	take := func(l net.Listener, treat func(net.Conn)) {
		all.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				all.Go(func() {
					defer c.Close()
					treat(c)
				})
			}
		})
	}
	p := passive.Addr().(*net.TCPAddr).Port
	port := fmt.Sprintf("%d,%d", p>>8, p&255)
	take(l, func(c net.Conn) { i.talk(c, port) })
	take(passive, func(d net.Conn) {
		if i.data != nil {
			i.data(d)
		}
	})
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), passive.Close()); err != nil {
			t.Error(err)
		}
		all.Wait()
	})
	return l.Addr().String()
}

func (i impostor) talk(c net.Conn, port string) {
	answer := func(verb, usual string) bool {
		text, known := i.answers[verb]
		if !known {
			text = usual
		}
		_, err := io.WriteString(c, strings.ReplaceAll(text, "PORT", port))
		return err == nil
	}
	if !answer("", "220 ready\r\n") {
		return
	}
	in := bufio.NewScanner(c)
	for in.Scan() {
		verb, arg, _ := strings.Cut(in.Text(), " ")
		usual := map[string]string{
			"USER": "331 password\r\n", "PASV": "227 Entering Passive Mode (127,0,0,1,PORT)\r\n",
			"RETR": "150 go\r\n226 done\r\n", "STOR": "150 go\r\n226 done\r\n", "MLSD": "150 go\r\n226 done\r\n", "LIST": "150 go\r\n226 done\r\n",
			"MLST": "550 No such file or directory\r\n", "MODE": "500 what?\r\n", "ERET": "500 what?\r\n",
		}[verb]
		if usual == "" {
			usual = "200 fine\r\n"
		}
		if verb == "PORT" && i.active != nil {
			go i.connect(arg)
		}
		if verb == "QUIT" || !answer(verb, usual) {
			return
		}
	}
}

// connect makes a data connection to a client.
func (i impostor) connect(arg string) {
	to, _ := parsePassive([]byte(arg))
	d, err := (&net.Dialer{}).Dial("tcp", to.String())
	if err != nil {
		return
	}
	defer d.Close()
	i.active(d)
}

func endless(piece string) string { return strings.Repeat(piece, 200<<10/len(piece)) }

func send(text string) func(net.Conn) {
	return func(d net.Conn) { _, _ = io.WriteString(d, text) }
}

func block(flags byte, count, offset uint64) string {
	b := binary.BigEndian.AppendUint64([]byte{flags}, count)
	return string(binary.BigEndian.AppendUint64(b, offset))
}

// TestImpostors checks that an operation ends in time with an error of the right class for each of
// these servers, and leaves a client that can continue.
func TestImpostors(t *testing.T) {
	read := storage.Op{Kind: storage.Read, Path: "f", Size: 10}
	wide := storage.Op{Kind: storage.Read, Path: "f", Size: 10, Ahead: 2}
	list := storage.Op{Kind: storage.List, Path: "d"}
	for name, c := range map[string]struct {
		impostor
		op   storage.Op
		want storage.Class
		says string
	}{
		"busy at the door":     {impostor{answers: map[string]string{"": "421 too many\r\n"}}, read, storage.Busy, "421 too many"},
		"greets with nonsense": {impostor{answers: map[string]string{"": "SSH-2.0-x\r\n"}}, read, storage.Other, "SSH-2.0-x"},
		"greets for ever": {impostor{answers: map[string]string{"": "220-hi\r\n" + endless("220-hi\r\n")}}, read, storage.Other,
			"65536 bytes"},
		"a line for ever":  {impostor{answers: map[string]string{"": endless("220")}}, read, storage.Other, "line of more than"},
		"no such user":     {impostor{answers: map[string]string{"USER": "530 no\r\n"}}, read, storage.Denied, "530 no"},
		"wants an account": {impostor{answers: map[string]string{"PASS": "332 account?\r\n"}}, read, storage.Denied, "332"},
		"only ASCII":       {impostor{answers: map[string]string{"TYPE": "504 A only\r\n"}}, read, storage.Other, "TYPE I"},
		"no address":       {impostor{answers: map[string]string{"PASV": "227 go away\r\n"}}, read, storage.Other, "no address"},
		"half an address":  {impostor{answers: map[string]string{"PASV": "227 (127,0,0,1,2)\r\n"}}, read, storage.Other, "no address"},
		"a low port":       {impostor{answers: map[string]string{"PASV": "227 (127,0,0,1,0,25)\r\n"}}, read, storage.Other, "127.0.0.1:25"},
		"an address of its link": {impostor{answers: map[string]string{"PASV": "227 (169,254,169,254,31,64)\r\n"}}, read, storage.Other,
			"169.254.169.254"},
		"escapes":          {impostor{answers: map[string]string{"RETR": "551 \x1b[31mred\r\n"}}, read, storage.Other, `\x1b[31mred`},
		"sends too much":   {impostor{data: send("01234567890")}, read, storage.Sized, "more than the 10 bytes"},
		"sends too little": {impostor{data: send("012345678")}, read, storage.Short, "9 bytes"},
		"breaks off": {impostor{answers: map[string]string{"RETR": "150 go\r\n426 lost it\r\n"}, data: send("0123456789")}, read,
			storage.Reset, "426"},
		"never says the end": {impostor{answers: map[string]string{"RETR": "150 go\r\n"}, data: send("0123456789")}, read, storage.Timeout, ""},
		"talks for ever": {impostor{answers: map[string]string{"RETR": endless("112 marker\r\n")}, data: send("0123456789")}, read,
			storage.Timeout, ""},
		"a listing cut off": {impostor{answers: map[string]string{"MLSD": "150 go\r\n426 lost it\r\n"}, data: send("Type=file; x\r\n")}, list,
			storage.Reset, "426"},
		"a listing without an end": {impostor{answers: map[string]string{"MLSD": "150 go\r\n"}, data: send("Type=file; x\r\n")}, list,
			storage.Timeout, ""},
		"LIST cut off": {impostor{answers: map[string]string{"MLSD": "500 what?\r\n", "LIST": "150 go\r\n421 bye\r\n"},
			data: send("-rw-r--r-- 1 a b 1 Nov 22 12:31 x\r\n")}, list, storage.Busy, "421"},
		"a limit of the server": {impostor{answers: map[string]string{"MLSD": "150 go\r\n226-Output truncated to 1 matches\r\n226 1 matches\r\n"},
			data: send("Type=file; x\r\n")}, list, storage.Short, "truncated to 1"},
		"no names":        {impostor{data: send("Type=file;\r\n")}, list, storage.Other, "Type=file;"},
		"a name for ever": {impostor{data: send("Type=file; " + strings.Repeat("x", 300<<10))}, list, storage.Other, "line of a listing"},
		"no facts": {impostor{answers: map[string]string{"MLST": "250-x\r\n250 End\r\n"}}, storage.Op{Kind: storage.Stat, Path: "f"},
			storage.Other, "MLST"},
		"a negative size": {impostor{answers: map[string]string{"MLST": "500 what?\r\n", "SIZE": "213 -1\r\n"}},
			storage.Op{Kind: storage.Stat, Path: "f"}, storage.Other, "SIZE"},
		"a sum too long": {impostor{answers: map[string]string{"CKSM": "213 0123456789\r\n"}},
			storage.Op{Kind: storage.Checksum, Path: "f", Sum: "adler32"}, storage.Other, "CKSM"},
		"full disk": {
			impostor{answers: map[string]string{"STOR": "150 go\r\n552 disk full\r\n"}}, storage.Op{Kind: storage.Write, Path: "f", Size: 100 << 20},
			storage.ServerFailed, "552 disk full",
		},
		"a huge block":        {parallel(block(0, 1<<63, 0)), wide, storage.Other, "9223372036854775808"},
		"a block too many":    {parallel(block(0, 10, 0) + "0123456789" + block(0, 1, 10)), wide, storage.Sized, "more than the 10"},
		"half a header":       {parallel(block(0, 10, 0)[:9]), wide, storage.Short, "ended early"},
		"no end of file":      {parallel(block(0, 10, 0) + "0123456789"), wide, storage.Short, "ended early"},
		"an end of nothing":   {parallel(block(endOfFile, 0, 0)), wide, storage.Other, "end of file"},
		"an end of too many":  {parallel(block(endOfFile, 0, 1<<40)), wide, storage.Other, "end of file"},
		"a block half a file": {parallel(block(0, 5, 0) + "01234" + block(endOfFile|endOfData, 0, 1)), wide, storage.Short, "fewer bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := serviceAt(t, "ftp://"+c.start(t), storage.Credentials{}).Client()
			defer client.Close()
			c.op.Timeout = 20 * time.Second
			if c.want == storage.Timeout {
				c.op.Timeout = 300 * time.Millisecond
			}
			for range 2 { // the second time on the same session, or on a new session
				_, err := client.Do(t.Context(), &c.op, &quiet{})
				if got := storage.Classify(err); got != c.want || err == nil || !strings.Contains(err.Error(), c.says) {
					t.Fatalf("%v: class %q, want %q with %q", err, got, c.want, c.says)
				}
			}
		})
	}
}

// TestOddNamesAreLeftOut checks that names that a command cannot have are left out and counted.
func TestOddNamesAreLeftOut(t *testing.T) {
	t.Parallel()
	i := impostor{answers: map[string]string{"MLSD": "150 go\r\n226 done\r\n"},
		data: send("Type=file; ../x\r\nType=file; a\rb\r\nType=file; y\r\n")}
	client := serviceAt(t, "ftp://"+i.start(t), storage.Credentials{}).Client()
	defer client.Close()
	res, err := client.Do(t.Context(), &storage.Op{Kind: storage.List, Path: "d", Timeout: 20 * time.Second}, &quiet{})
	if err != nil || len(res.Entries) != 1 || res.Entries[0].Name != "y" || res.Omitted != 2 || res.Omission == nil {
		t.Errorf("%+v, %v", res, err)
	}
}

// parallel returns a server that supports extended block mode and sends one stream.
func parallel(text string) impostor {
	return impostor{answers: map[string]string{"MODE": "200 fine\r\n", "RETR": "150 go\r\n226 done\r\n"}, active: send(text)}
}

// TestIPv6 checks that the client sends EPSV, and connects to the address of the control
// connection.
func TestIPv6(t *testing.T) {
	data, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip(err)
	}
	defer data.Close()
	control, err := net.Listen("tcp", "[::1]:0")
	require.NoError(t, err)
	defer control.Close()
	i := impostor{answers: map[string]string{
		"EPSV": fmt.Sprintf("229 Extended Passive Mode Entered (|||%d|)\r\n", data.Addr().(*net.TCPAddr).Port),
	}}
	go func() {
		if c, err := control.Accept(); err == nil {
			defer c.Close()
			i.talk(c, "")
		}
	}()
	go func() {
		if d, err := data.Accept(); err == nil {
			defer d.Close()
			send("0123456789")(d)
		}
	}()
	c := serviceAt(t, "ftp://"+control.Addr().String(), storage.Credentials{}).Client()
	defer c.Close()
	if _, q := must(t, c, storage.Op{Kind: storage.Read, Path: "f", Size: 10, Timeout: 20 * time.Second}); q.moved != 10 ||
		len(q.servers) != 1 || q.servers[0] != "::1" {
		t.Errorf("%d bytes from %v", q.moved, q.servers)
	}
}

// TestExtraReplies checks that extra replies are not taken for the next command's replies.
func TestExtraReplies(t *testing.T) {
	i := impostor{answers: map[string]string{"NOOP": "200 fine\r\n550 and more\r\n"}}
	c := serviceAt(t, "ftp://"+i.start(t), storage.Credentials{}).Client()
	defer c.Close()
	for range 5 {
		must(t, c, storage.Op{Kind: storage.Ping})
	}
}

// TestAllowedAddresses checks the rules in the package's comment.
func TestAllowedAddresses(t *testing.T) {
	near, far := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("198.51.100.7")
	for _, c := range []struct {
		to   string
		peer netip.Addr
		want string // "" is refused
	}{
		{"198.51.100.7:50000", far, "198.51.100.7:50000"}, {"203.0.113.9:50000", far, "203.0.113.9:50000"},
		{"10.1.2.3:50000", far, "10.1.2.3:50000"},
		{"0.0.0.0:50000", far, "198.51.100.7:50000"}, {"127.0.0.1:50000", far, ""}, {"127.9.9.9:50000", near, "127.9.9.9:50000"},
		{"0.0.0.0:50000", near, "127.0.0.1:50000"}, {"169.254.1.1:50000", far, ""}, {"224.0.0.1:50000", far, ""},
		{"255.255.255.255:50000", far, ""},
		{"198.51.100.7:1023", far, ""}, {"198.51.100.7:0", far, ""}, {"198.51.100.7:1024", far, "198.51.100.7:1024"},
	} {
		got, ok := allowed(netip.MustParseAddrPort(c.to), c.peer, c.peer.IsLoopback())
		if ok != (c.want != "") || ok && got.String() != c.want {
			t.Errorf("%s from %s: %s, %v, want %q", c.to, c.peer, got, ok, c.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	for url, says := range map[string]string{
		"gsiftp://a:b@h/x":     "user",
		"ftp:///x":             "no host",
		"ftp://h:0/x":          "port",
		"ftp://h/a%0ADELE%20b": "cannot stand in a command",
		"ftp://h/x?y":          "%3F",
		"ftp://a%0Db:c@h/x":    "user",
		"ftp://h/%ffx":         "0xff",
		"http://h/":            "use ftp",
	} {
		if _, err := open(storagetest.TargetOf(t, url, storage.Credentials{})); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", url, err, says)
		}
	}
	if _, err := open(storagetest.TargetOf(t, "ftp://h/", storage.Credentials{Method: "x509"})); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	c := serviceAt(t, "ftp://127.0.0.1:9/", storage.Credentials{}).Client()
	for _, op := range []storage.Op{{Kind: storage.Remove, Path: "x\r\nDELE y"}, {Kind: storage.Move, Path: "x", Source: "y\nDELE z"}} {
		if _, err := c.Do(t.Context(), &op, &quiet{}); err == nil || !strings.Contains(err.Error(), "cannot stand") {
			t.Errorf("%q: %v", op.Path, err)
		}
	}
}

func FuzzReply(f *testing.F) {
	f.Add([]byte("211-x\r\n y\r\n211 End\r\n150 go\r\n226 done\r\n"))
	f.Add([]byte("220\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r reply
		for line := range bytes.Lines(text) {
			done, err := r.add(bytes.TrimRight(line, "\r\n"))
			if err != nil || done && (r.code < 100 || r.code > 659) || len(r.text) > keptText {
				if err == nil {
					t.Errorf("%+v", r)
				}
				return
			}
			_ = summary(string(r.text))
			_ = meaning(r.code, string(r.text))
			_ = factLine(&r)
			if done {
				r.reset()
			}
		}
	})
}

func FuzzAddress(f *testing.F) {
	for _, s := range []string{"Entering Passive Mode (127,0,0,1,229,255).", "=1,2,3,4,5,6", "Entering Extended Passive Mode (|||6446|)"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if to, ok := parsePassive(text); ok {
			b := to.Addr().As4()
			want := fmt.Sprintf("%d,%d,%d,%d,%d,%d", b[0], b[1], b[2], b[3], to.Port()>>8, to.Port()&255)
			if again, ok := parsePassive([]byte(want)); !ok || again != to {
				t.Errorf("%q is %v, and %q %v", text, to, want, again)
			}
		}
		if port, ok := parseExtended(text); ok && !strings.Contains(string(text), strconv.Itoa(int(port))) {
			t.Errorf("%q is port %d", text, port)
		}
	})
}

func FuzzListing(f *testing.F) {
	for _, s := range []string{
		"Type=file;Size=11; a b", "drwxr-xr-x 3 root root 4096 Nov 22 12:31 a b", "lrwxrwxrwx 1 a b 3 Nov 22 2025 l -> x",
		"11-22-26  12:31PM  <DIR>  name", "11-22-26 12:31PM 123 name", "total 12", " x", "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, parse := range []func([]byte) (storage.Entry, bool, error){parseLine, parseMachineLine} {
			if e, skip, err := parse(line); err == nil && !skip &&
				(e.Name == "" && len(line) > 2 && line[0] != ' ' && !bytes.HasSuffix(line, []byte(" ")) || e.Size < -1) {
				t.Errorf("%q is %+v", line, e)
			}
		}
	})
}

func FuzzHeader(f *testing.F) {
	f.Add([]byte(block(endOfFile|endOfData, 0, 4)))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) != headerSize {
			return
		}
		h, err := parseHeader((*[headerSize]byte)(text))
		if err == nil && (h.count < 0 || h.offset < 0 || h.offset+h.count < 0) {
			t.Errorf("%x is %+v", text, h)
		}
	})
}

func TestListingLines(t *testing.T) {
	if e, _, err := parseLine([]byte("lrwxrwxrwx 1 a b 3 Nov  2  2025  -> x")); err == nil {
		t.Errorf("a link without a name is %+v", e)
	}
	for line, want := range map[string]storage.Entry{
		"-rw-r--r--   1 ada      users       1234 Nov 22 12:31 name with  spaces": {Name: "name with  spaces", Size: 1234},
		"drwxr-xr-x   2 0        0            4096 Nov 22 12:46 dir":              {Name: "dir", Size: -1, Dir: true},
		"lrwxrwxrwx 1 a b 3 Nov  2  2025 l -> x":                                  {Name: "l", Size: -1},
		"-rw-r--r-- 1 ada 7 May  2  2025  two":                                    {Name: " two", Size: 7},
		"11-22-26  12:31PM       <DIR>          some folder":                      {Name: "some folder", Size: -1, Dir: true},
		"11-22-26  12:31PM              1234 file.txt":                            {Name: "file.txt", Size: 1234},
	} {
		if e, skip, err := parseLine([]byte(line)); e != want || skip || err != nil {
			t.Errorf("%q is %+v, %v, %v", line, e, skip, err)
		}
	}
}
