package cluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A roll is a file that says who has come in and who has gone, a line each, for
// a controller that is started again.
type roll struct{ f *os.File }

// An enrolled is a line of it.
type enrolled struct {
	Session string        `json:"session,omitempty"`
	Number  int           `json:"number,omitempty"`
	Host    string        `json:"host,omitempty"`
	Job     string        `json:"job,omitempty"`
	Offset  time.Duration `json:"offset,omitempty"`
	Doubt   time.Duration `json:"doubt,omitempty"`
	Boot    string        `json:"boot,omitempty"`
	Space   string        `json:"pid_space,omitempty"`
	Pid     int           `json:"pid,omitempty"`
	Gone    bool          `json:"gone,omitempty"`
	Numbers int           `json:"numbers,omitempty"` // without Session: so many numbers of clients have been given
}

const rollFile = "workers.jsonl"

// openRoll opens the roll in dir and returns what it says: the lines of those
// who have not gone, how many have ever come, and how many numbers of clients
// were given.
func openRoll(dir string) (r *roll, here []enrolled, came, numbers int, err error) {
	path := filepath.Join(dir, rollFile)
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, nil, 0, 0, fmt.Errorf("state of the door for workers: %w", err)
	default:
		here, came, numbers = readRoll(f)
		_ = f.Close() // only read from
	}
	f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, 0, 0, fmt.Errorf("state of the door for workers: %w", err)
	}
	return &roll{f}, here, came, numbers, nil
}

// readRoll reads up to a line that is not whole, the last one of a killed
// controller.
func readRoll(in io.Reader) (here []enrolled, came, numbers int) {
	place := map[string]int{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var e enrolled
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		switch at, known := place[e.Session]; {
		case e.Session == "":
			numbers = max(numbers, e.Numbers)
		case e.Gone && known:
			here[at].Gone = true
		case !e.Gone && !known:
			place[e.Session] = len(here)
			here = append(here, e)
			came = max(came, e.Number)
		}
	}
	left := here[:0]
	for _, e := range here {
		if !e.Gone {
			left = append(left, e)
		}
	}
	return left, came, numbers
}

// note writes a line. A nil roll takes none.
func (r *roll) note(e enrolled) error {
	if r == nil {
		return nil
	}
	text, err := json.Marshal(e)
	if err == nil {
		_, err = r.f.Write(append([]byte{'\n'}, append(text, '\n')...)) // what a killed controller has left unfinished is ended first
	}
	if err != nil {
		err = fmt.Errorf("state of the door for workers: %w", err)
	}
	return err
}
