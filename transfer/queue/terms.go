package queue

import (
	"encoding/json"
	"time"
)

// JobTerms are additional terms of a job, for all its files.
type JobTerms struct {
	RetryDelay time.Duration `json:"retry_delay_ns,omitempty"` // between attempts that count; 0: computed by the queue
	Strict     bool          `json:"strict,omitempty"`         // copy without checking the destination or checksums
	Delete     bool          `json:"delete,omitempty"`         // remove files from their destination, which is their only source
	Stage      time.Duration `json:"stage_ns,omitempty"`       // bring sources online, within this time; 0: they are online
	Pin        time.Duration `json:"pin_ns,omitempty"`         // time that they are needed on disk; 0: the tape system decides
	Archive    time.Duration `json:"archive_ns,omitempty"`     // files end when they are on tape, within this time; 0: when they have arrived
}

// text returns the terms as they are stored.
func (t JobTerms) text() string {
	if t == (JobTerms{}) {
		return ""
	}
	text, _ := json.Marshal(t) // cannot fail
	return string(text)
}

func (t *JobTerms) parse(text string) error {
	*t = JobTerms{}
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), t)
}
