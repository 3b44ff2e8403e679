package emulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A HostDialer connects an isolated process to destinations outside its network: the process that
// started it dials and listens, and passes the sockets in.
type HostDialer struct {
	conn  *net.UnixConn
	group sync.WaitGroup
	gone  chan struct{} // closed when the other side has ended

	asked calls[dialAnswer] // inside
}

type dialAnswer struct {
	socket *os.File
	err    error
}

// listenRequest is sent instead of an address to request a listener outside.
const listenRequest = "listen"

// dialerVariable holds the descriptor of the HostDialer of an isolated process.
const dialerVariable = "WEIR_HOST_DIALER"

// dialMessage is more than an address or an error of one may take.
const dialMessage = 4 << 10

// Isolate prepares cmd, usually this program, to start in a user namespace, in which it keeps its
// user but may make networks, and in a network of its own, which has nothing but a loopback. It
// needs no privilege if the system allows all users to make such namespaces. The program calls
// Enter when it starts. The caller closes the HostDialer when cmd has ended.
func Isolate(cmd *exec.Cmd) (*HostDialer, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	inside := os.NewFile(uintptr(pair[1]), "dialer")
	d, err := newHostDialer(os.NewFile(uintptr(pair[0]), "dialer"))
	if err != nil {
		return nil, errors.Join(err, inside.Close())
	}
	isolate(cmd)
	cmd.ExtraFiles = append(cmd.ExtraFiles, inside)
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, dialerVariable+"="+strconv.Itoa(2+len(cmd.ExtraFiles)))
	d.group.Go(func() {
		d.serve()
		_ = inside.Close() // kept until then, since cmd is started after this
	})
	return d, nil
}

func isolate(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	a := cmd.SysProcAttr
	a.Cloneflags |= syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	a.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN}
}

// Enter must be called first by a program that may have been started by Isolate. If it was, Enter
// brings its loopback up and returns the HostDialer to the outside, whose Dial is for
// Options.Outside; otherwise nil. Processes that it starts do not inherit the connection.
func Enter() (*HostDialer, error) {
	fd, err := strconv.Atoi(os.Getenv(dialerVariable))
	if err != nil {
		return nil, nil
	}
	if err := os.Unsetenv(dialerVariable); err != nil {
		return nil, err
	}
	unix.CloseOnExec(fd)
	h, err := netlink.NewHandle()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	if err := loopbackUp(h); err != nil {
		return nil, fmt.Errorf("take the loopback into service: %w", err)
	}
	d, err := newHostDialer(os.NewFile(uintptr(fd), "dialer"))
	if err != nil {
		return nil, err
	}
	d.group.Go(d.listen)
	return d, nil
}

func newHostDialer(f *os.File) (*HostDialer, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("the socket of an isolated process: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the socket of an isolated process is a %T", c), c.Close())
	}
	return &HostDialer{conn: u, gone: make(chan struct{})}, nil
}

// Close ends the HostDialer. Connections that it made stay open.
func (d *HostDialer) Close() error {
	err := d.conn.Close()
	d.group.Wait()
	return err
}

// Gone returns a channel that is closed when the other side has ended, or Close was called: an
// isolated process then ends, since the process that started it has ended.
func (d *HostDialer) Gone() <-chan struct{} { return d.gone }

// dialPatience limits the time to make a connection.
const dialPatience = 30 * time.Second

// serve makes connections for the isolated process until that ends.
func (d *HostDialer) serve() {
	ctx, stop := context.WithCancel(context.Background())
	var calls sync.WaitGroup
	defer close(d.gone)
	defer calls.Wait()
	defer stop()
	b := make([]byte, dialMessage)
	for {
		n, err := d.conn.Read(b)
		if err != nil || n == 0 {
			return
		}
		id, address, ok := strings.Cut(string(b[:n]), " ")
		if ok {
			calls.Go(func() { d.answer(ctx, id, address) })
		}
	}
}

// answer sends the number of a question, and a socket or an error.
func (d *HostDialer) answer(ctx context.Context, id, address string) {
	c, err := openSocket(ctx, address)
	if err == nil {
		defer c.Close()
		var raw syscall.RawConn
		if raw, err = c.SyscallConn(); err == nil {
			err = raw.Control(func(fd uintptr) {
				_, _, _ = d.conn.WriteMsgUnix([]byte(id), unix.UnixRights(int(fd)), nil) // the other end is closed
			})
		}
	}
	if err != nil {
		text := err.Error()
		_, _ = d.conn.Write([]byte(id + " " + text[:min(len(text), dialMessage-100)])) // the same
	}
}

// A socket is a connection or a listener.
type socket interface {
	io.Closer
	syscall.Conn
}

func openSocket(ctx context.Context, address string) (socket, error) {
	if address == listenRequest {
		l, err := listenAnywhere(ctx)
		if err != nil {
			return nil, err
		}
		return l.(*net.TCPListener), nil
	}
	c, err := (&net.Dialer{Timeout: dialPatience}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// Dial makes the process outside connect to address. It may be called by several goroutines.
func (d *HostDialer) Dial(ctx context.Context, address string) (*net.TCPConn, error) {
	if len(address) > dialMessage-100 {
		return nil, errors.New("an address of thousands of bytes")
	}
	f, err := d.ask(ctx, address)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	t, ok := c.(*net.TCPConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("a %T was received instead of a TCP connection", c), c.Close())
	}
	return t, nil
}

// Listen makes the process outside listen at any free port of all its addresses. It may be called
// by several goroutines. The caller closes the listener.
func (d *HostDialer) Listen(ctx context.Context) (net.Listener, error) {
	f, err := d.ask(ctx, listenRequest)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return net.FileListener(f)
}

// ask returns a socket that the process outside opens.
func (d *HostDialer) ask(ctx context.Context, what string) (*os.File, error) {
	a, err := d.asked.ask(ctx, func(id int) error {
		_, err := d.conn.Write([]byte(strconv.Itoa(id) + " " + what))
		return err
	})
	if err != nil {
		return nil, err
	}
	return a.socket, a.err
}

// listen passes connections from outside to the listeners.
func (d *HostDialer) listen() {
	b, rights := make([]byte, dialMessage), make([]byte, unix.CmsgSpace(4))
	for {
		n, rn, _, _, err := d.conn.ReadMsgUnix(b, rights)
		if err != nil || n == 0 {
			d.asked.end(fmt.Errorf("the connection to the outside is closed: %w", errors.Join(err, net.ErrClosed)))
			close(d.gone)
			return
		}
		number, text, _ := strings.Cut(string(b[:n]), " ")
		f, err := carried(rights[:rn])
		if f == nil && err == nil {
			err = errors.New(text)
		}
		if id, _ := strconv.Atoi(number); !d.asked.answer(id, dialAnswer{f, err}) && f != nil {
			_ = f.Close() // it comes too late
		}
	}
}

// carried returns the socket that came with a message, nil if the message has no socket.
func carried(rights []byte) (*os.File, error) {
	if len(rights) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) == 0 {
		return nil, err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return nil, err
	}
	return os.NewFile(uintptr(fds[0]), "socket"), nil
}
