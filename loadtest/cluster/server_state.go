package cluster

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"weir/internal/durable"
)

// A state is the record that a server keeps of itself, besides its identity.
type state struct {
	Run  string `json:"run"`
	Port int    `json:"port"` // 0: not known yet
}

const stateFile = "server.json"

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
		err = fmt.Errorf("state of the server for workers: %w", err)
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

// where returns the address at which a server listens, and the names under which workers reach it.
// port is the server's previous port, or 0.
func where(address string, port int) (listen string, hosts []string, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		host, text = strings.Trim(address, "[]"), ""
	}
	if text != "" {
		if port, err = strconv.Atoi(text); err != nil {
			return "", nil, fmt.Errorf("invalid port %s", text)
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

// addresses returns the addresses of this machine that other machines may reach, IPv4 first; the
// loopback address if there is no other address.
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

// A journal is a file that records the workers that connected and left, one a line, for a restarted
// controller.
type journal struct{ f *os.File }

// A journalEntry is a line of the journal.
type journalEntry struct {
	identity
	Number  int  `json:"number,omitempty"`
	Gone    bool `json:"gone,omitempty"`
	Step    int  `json:"step,omitempty"`    // step that it was given, with one job per client
	Numbers int  `json:"numbers,omitempty"` // number of clients' numbers that are in use
}

const journalFile = "workers.jsonl"

// A journalState is the content of a journal.
type journalState struct {
	here    []journalEntry // workers that have not left
	came    int            // number of workers that ever connected
	numbers int            // number of clients' numbers in use
	begun   map[int]int    // with one job per client: number of begun jobs, by step
}

// openJournal opens the journal in dir and returns its content.
func openJournal(dir string) (r *journal, was journalState, err error) {
	path := filepath.Join(dir, journalFile)
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, was, fmt.Errorf("state of the server for workers: %w", err)
	default:
		was = readJournal(f)
		_ = f.Close() // only read from
	}
	f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, was, fmt.Errorf("state of the server for workers: %w", err)
	}
	return &journal{f}, was, nil
}

// readJournal reads all entries and skips incomplete lines, which a killed controller may have
// left.
func readJournal(in io.Reader) journalState {
	place, was := map[string]int{}, journalState{begun: map[int]int{}}
	var all []journalEntry
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var e journalEntry
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		was.numbers = max(was.numbers, e.Numbers)
		switch at, known := place[e.Session]; {
		case e.Session == "":
		case e.Gone && known:
			all[at].Gone = true
		case e.Step > 0 && known:
			all[at].Step = e.Step
			was.begun[e.Step]++
		case !e.Gone && !known:
			place[e.Session] = len(all)
			all = append(all, e)
			was.came = max(was.came, e.Number)
		}
	}
	for _, e := range all {
		if !e.Gone {
			was.here = append(was.here, e)
		}
	}
	return was
}

// note writes a line. A nil journal ignores it.
func (r *journal) note(e journalEntry) error {
	if r == nil {
		return nil
	}
	text, err := json.Marshal(e)
	if err == nil {
		// An unfinished line of a killed controller is ended first.
		_, err = r.f.Write(append([]byte{'\n'}, append(text, '\n')...))
	}
	if err != nil {
		err = fmt.Errorf("state of the server for workers: %w", err)
	}
	return err
}
