package cluster

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"weir/internal/durable"
)

// A state is what a server keeps of itself, besides its identity.
type state struct {
	Run  string `json:"run"`
	Port int    `json:"port"` // 0: not known yet
}

const stateFile = "door.json"

func readState(dir string) (s state, err error) {
	text, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		b := make([]byte, 8)
		_, err = rand.Read(b)
		return state{Run: hex.EncodeToString(b)}, err
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		err = fmt.Errorf("state of the door for workers: %w", err)
	}
	return s, err
}

func (s state) write(dir string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return durable.Write(filepath.Join(dir, stateFile), text, 0o600)
}

// where says at which address a server listens, and under which names workers
// look for it. port is the one of before, 0 if there was none.
func where(address string, port int) (listen string, hosts []string, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		host, text = strings.Trim(address, "[]"), ""
	}
	if text != "" {
		if port, err = strconv.Atoi(text); err != nil {
			return "", nil, fmt.Errorf("%s is no port", text)
		}
	}
	listen = ":" + strconv.Itoa(port)
	if host == "" {
		hosts, err = addresses()
		return listen, hosts, err
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		listen = joinHost(host, port)
	}
	return listen, []string{host}, nil
}

// addresses are those of this machine that others may reach, IPv4 first; the
// loopback's if there is no other.
func addresses() (all []string, err error) {
	found, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var six []string
	for _, a := range found {
		n, ok := a.(*net.IPNet)
		switch {
		case !ok || !n.IP.IsGlobalUnicast():
		case n.IP.To4() != nil:
			all = append(all, n.IP.String())
		default:
			six = append(six, n.IP.String())
		}
	}
	if all = append(all, six...); len(all) == 0 {
		all = []string{"127.0.0.1"}
	}
	return all, nil
}

func joinHost(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

func portOf(a net.Addr) int {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.Port
	}
	return 0
}
