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
	Step    int           `json:"step,omitempty"`    // it was given, where clients are jobs
	Numbers int           `json:"numbers,omitempty"` // of clients: so many have been given
}

const rollFile = "workers.jsonl"

// An attendance is what a roll says.
type attendance struct {
	here    []enrolled  // who has not gone
	came    int         // how many have ever
	numbers int         // of clients that were given
	begun   map[int]int // where clients are jobs: how many have begun, by step
}

// openRoll opens the roll in dir and returns what it says.
func openRoll(dir string) (r *roll, was attendance, err error) {
	path := filepath.Join(dir, rollFile)
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, was, fmt.Errorf("state of the door for workers: %w", err)
	default:
		was = readRoll(f)
		_ = f.Close() // only read from
	}
	f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, was, fmt.Errorf("state of the door for workers: %w", err)
	}
	return &roll{f}, was, nil
}

// readRoll reads up to a line that is not whole, the last one of a killed
// controller.
func readRoll(in io.Reader) attendance {
	place, was := map[string]int{}, attendance{begun: map[int]int{}}
	var all []enrolled
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var e enrolled
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
