package agent

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"time"

	"weir/transfer"
	"weir/transfer/mover"
)

// tidyEvery is how often the coordinator is asked which temporaries are over.
const tidyEvery = 10 * time.Second

// parts are temporaries of the site that no attempt here works on: those of pulls
// that were broken off, and of others' pushes. Nobody else can say whether they are
// of use but the coordinator.
func (a *Agent) parts() []transfer.Hold {
	if time.Since(a.tidied) < tidyEvery {
		return nil
	}
	a.tidied = time.Now()
	dir, err := a.root.Open(mover.Hidden)
	if err != nil {
		return nil // there is none yet
	}
	defer dir.Close() //nolint:errcheck // only read
	var all []transfer.Hold
	for {
		names, err := dir.Readdirnames(1000)
		for _, name := range names {
			if h, ok := partOf(name); ok && !a.hands.has(h.Item) {
				all = append(all, h)
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				a.log.Warn("temporaries cannot be listed", "error", err)
			}
			break
		}
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] }) // if there are many, others the next time
	return all[:min(len(all), transfer.MaxParts)]
}

// partOf reads ITEM.EPOCH.part.
func partOf(name string) (h transfer.Hold, ok bool) {
	_, err := fmt.Sscanf(name, "%d.%d.part", &h.Item, &h.Epoch)
	return h, err == nil && name == partName(h)
}

func partName(h transfer.Hold) string { return fmt.Sprintf("%d.%d.part", h.Item, h.Epoch) }

// tidy removes temporaries that nobody goes on with.
func (a *Agent) tidy(over []transfer.Hold) {
	for _, h := range over {
		if a.hands.has(h.Item) {
			continue
		}
		a.mover.Drop(h.Item)
		if err := a.root.Remove(path.Join(mover.Hidden, partName(h))); err != nil && !errors.Is(err, os.ErrNotExist) {
			a.log.Warn("a temporary cannot be removed", "name", partName(h), "error", err)
		}
	}
}
