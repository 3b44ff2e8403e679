package agent

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
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
	hidden := a.hidden()
	if hidden == nil {
		return nil
	}
	defer hidden.Close() //nolint:errcheck // only read
	dir, err := hidden.Open(".")
	if err != nil {
		a.log.Warn("temporaries cannot be listed", "error", err)
		return nil
	}
	defer dir.Close() //nolint:errcheck // only read
	var all []transfer.Hold
	for {
		entries, err := dir.ReadDir(1000)
		for _, e := range entries {
			if h, ok := partOf(e.Name()); ok && e.Type().IsRegular() && !a.hands.has(h.Item) {
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

// hidden opens the folder of temporaries: nil if there is none yet, or if it is a
// link to another one, which may have files of these names that are not ours.
func (a *Agent) hidden() *os.Root {
	info, err := a.root.Lstat(mover.Hidden)
	if err != nil || !info.IsDir() {
		return nil
	}
	r, err := a.root.OpenRoot(mover.Hidden)
	if err != nil {
		return nil
	}
	if same, err := r.Stat("."); err != nil || !os.SameFile(info, same) {
		_ = r.Close() // only opened
		return nil
	}
	return r
}

// partOf reads ITEM.EPOCH.part, as package mover writes it, and no other name.
func partOf(name string) (h transfer.Hold, ok bool) {
	_, err := fmt.Sscanf(name, "%d.%d.part", &h.Item, &h.Epoch)
	return h, err == nil && name == partName(h) && h.Item > 0 && h.Epoch > 0
}

func partName(h transfer.Hold) string { return fmt.Sprintf("%d.%d.part", h.Item, h.Epoch) }

// tidy removes temporaries that nobody goes on with. What is no plain file stays.
func (a *Agent) tidy(over []transfer.Hold) {
	if len(over) == 0 {
		return
	}
	hidden := a.hidden()
	if hidden == nil {
		return
	}
	defer hidden.Close() //nolint:errcheck // what is removed is removed
	for _, h := range over {
		info, err := hidden.Lstat(partName(h))
		if _, ok := partOf(partName(h)); !ok || a.hands.has(h.Item) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		a.mover.Drop(h.Item)
		if err := hidden.Remove(partName(h)); err != nil && !errors.Is(err, os.ErrNotExist) {
			a.log.Warn("a temporary cannot be removed", "name", partName(h), "error", err)
		}
	}
}
