package dashboard

import (
	"slices"
	"strings"
	"time"

	"weir/internal/say"
	"weir/measure"
)

// An event is one line of events.jsonl.
type event struct {
	seq  int64
	Time time.Time `json:"time"`
	Kind string    `json:"event"`
	Step int       `json:"step,omitempty"`
	Text string    `json:"text"`
}

// Texts that come from elsewhere are cut to so many bytes.
const (
	mostText = 2000
	mostName = 200
)

// short is text as it is shown: without control characters, and not for ever.
func short(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " ..."
	}
	return say.Plain(text)
}

// event adds one line of events.jsonl.
func (h *history) event(e *measure.Event) {
	h.line()
	if !h.workers.tell(e) {
		return
	}
	text := short(e.Text, mostText)
	h.events = append(h.events, event{h.seq, e.Time, short(e.Kind, mostName), e.Step, text})
	if n := len(h.events) - mostEvents; n > mostEvents {
		h.events = slices.Delete(h.events, 0, n)
		h.dropped += n
	}
	switch e.Kind {
	case "error":
		h.errorOf(e.Class).tell(e.Time, text)
	case "step":
		h.begin(e)
	case "resume":
		h.resumed(e.Step)
	}
}
