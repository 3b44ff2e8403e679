package fts

import (
	"encoding/json"
	"errors"
	"fmt"
)

// journalName is the file in Config.Dir.
const journalName = "fts.jsonl"

// A line of the journal: the first line has the run, and each further line a job, before it is
// submitted, or again if FTS gave it another id.
type line struct {
	Run    string  `json:"run,omitempty"` // random, in the seeds of the ids of all jobs
	Job    string  `json:"job,omitempty"`
	Link   int     `json:"link,omitempty"`
	Copies []int64 `json:"copies,omitempty"` // in the order of the job's files
}

// A past has the content of the journal.
type past struct {
	run  string
	jobs map[int64]*line // by copy; nil after Resume
}

func (p *past) read(text []byte) error {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("malformed: %w", err)
	}
	switch {
	case p.run == "" && l.Run == "":
		return errors.New("the first line must have the key run")
	case p.run == "":
		p.run = l.Run
	}
	for _, id := range l.Copies {
		p.jobs[id] = &l
	}
	return nil
}
