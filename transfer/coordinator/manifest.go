package coordinator

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"weir/transfer"
)

// manifest writes a transfer.Manifest page by page: a request may have a million
// files. An answer that cannot be completed is broken off.
func (c *Coordinator) manifest(w http.ResponseWriter, r *http.Request) {
	id, err := c.reading(r)
	if err != nil {
		answerError(w, err)
		return
	}
	q, err := c.queue.Get(r.Context(), id)
	if err != nil {
		answerError(w, c.refusal(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	out, to := bufio.NewWriterSize(w, 64<<10), http.NewResponseController(w)
	broken := func(err error) {
		if err != nil {
			panic(http.ErrAbortHandler) // so that nobody takes a part for the whole
		}
	}
	head, err := json.Marshal(c.shown(q))
	broken(err)
	_, _ = fmt.Fprintf(out, "{\"request\":%s,\n\"items\":[", head) // Flush tells
	sum, n := transfer.NewManifestHash(), 0
	for one, err := range c.queue.All(r.Context(), id) {
		broken(err)
		text, err := json.Marshal(one)
		broken(err)
		between := "\n"
		if n > 0 {
			between = ",\n"
		}
		if n++; n%page1000 == 1 {
			_ = to.SetWriteDeadline(time.Now().Add(time.Minute)) // for each page anew
		}
		_, _ = out.WriteString(between) // the next one tells
		_, err = out.Write(text)
		broken(err)
		sum.Add(one)
	}
	_, _ = fmt.Fprintf(out, "\n],\"sha256\":%q}\n", sum.Digest())
	broken(out.Flush())
}
