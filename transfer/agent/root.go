package agent

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weir/internal/durable"
	"weir/transfer"
	"weir/transfer/mover"
)

// rootedName is a file in a state folder outside the root. It exists if the root already had the
// folder of temporaries.
const rootedName = "rooted"

// wasRooted refuses a root without the folder of temporaries that it had when this state was last
// used: its storage is not mounted, and files would be written below the mount point.
func (a *Agent) wasRooted() error {
	if a.o.State == "" {
		return nil // the state is in the root: the root is new
	}
	_, noMark := os.Stat(filepath.Join(a.state, rootedName))
	if noMark == nil && !a.mounted() {
		return fmt.Errorf("root of the site: %w (if it is to begin anew, remove %s)", a.notMounted(), filepath.Join(a.state, rootedName))
	}
	return nil
}

// isRooted records that the root has the folder of temporaries now.
func (a *Agent) isRooted() error {
	if a.o.State == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(a.state, rootedName), []byte("the root has a folder "+mover.Hidden+"\n"), 0o600)
}

// mounted reports whether the root still has the folder of temporaries that it had when the agent
// began.
func (a *Agent) mounted() bool {
	_, err := os.Stat(filepath.Join(a.o.Root, mover.Hidden))
	return !errors.Is(err, os.ErrNotExist)
}

func (a *Agent) notMounted() error {
	return fmt.Errorf("the folder %s is gone from the root of site %s: is its storage mounted?", mover.Hidden, a.o.Site)
}

// rootFolder, in the root, has a file with the name by which the coordinator identifies the root.
// If the storage is not mounted, an agent on the empty mount point registers with another name.
const (
	rootFolder = ".weir-serve-root"
	rootFile   = "name"
)

// rootName returns the name of the root, and creates it if it does not exist. It returns "" if it
// cannot be created.
func (a *Agent) rootName() string {
	folder := filepath.Join(a.o.Root, rootFolder)
	text, err := os.ReadFile(filepath.Join(folder, rootFile))
	if errors.Is(err, os.ErrNotExist) {
		text = []byte(rand.Text() + "\n")
		if err = os.Mkdir(folder, 0o700); err == nil || errors.Is(err, os.ErrExist) {
			err = durable.Write(filepath.Join(folder, rootFile), text, 0o600)
		}
	}
	if err != nil {
		a.log.Warn("the root cannot be identified", "error", err)
		return ""
	}
	return strings.TrimSpace(string(text))
}

// tidyEvery is the interval at which the agent sends a list of its temporaries to the coordinator,
// which returns those temporaries that are no longer needed.
const tidyEvery = 10 * time.Second

// parts returns temporaries of the site that no attempt here is working on: parts of interrupted
// pulls, and parts of pushes from other sites. Besides the agent, only the coordinator can decide
// whether they are still needed.
func (a *Agent) parts() []transfer.LeaseID {
	if time.Since(a.tidied) < tidyEvery {
		return nil
	}
	a.tidied = time.Now()
	hidden := a.hidden()
	if hidden == nil {
		return nil
	}
	defer hidden.Close()
	dir, err := hidden.Open(".")
	if err != nil {
		a.log.Warn("temporaries cannot be listed", "error", err)
		return nil
	}
	defer dir.Close()
	var all []transfer.LeaseID
	for {
		entries, err := dir.ReadDir(1000)
		for _, e := range entries {
			if h, ok := partOf(e.Name()); ok && e.Type().IsRegular() && !a.activity.has(h.Item) {
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
	mathrand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] }) // too many: others next time
	return all[:min(len(all), transfer.MaxParts)]
}

// hidden opens the folder of temporaries. It returns nil if the folder does not exist yet, or if it
// is a link to another folder, which may have files with such names that are not the agent's.
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

// partOf parses ITEM.EPOCH.part, as package mover writes it, and refuses any other name.
func partOf(name string) (h transfer.LeaseID, ok bool) {
	_, err := fmt.Sscanf(name, "%d.%d.part", &h.Item, &h.Epoch)
	return h, err == nil && name == partName(h) && h.Item > 0 && h.Epoch > 0
}

func partName(h transfer.LeaseID) string { return fmt.Sprintf("%d.%d.part", h.Item, h.Epoch) }

// tidy removes temporaries that no attempt will resume. Anything but regular files stays.
func (a *Agent) tidy(over []transfer.LeaseID) {
	if len(over) == 0 {
		return
	}
	hidden := a.hidden()
	if hidden == nil {
		return
	}
	defer hidden.Close()
	for _, h := range over {
		info, err := hidden.Lstat(partName(h))
		if _, ok := partOf(partName(h)); !ok || a.activity.has(h.Item) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		a.mover.Drop(h.Item)
		if err := hidden.Remove(partName(h)); err != nil && !errors.Is(err, os.ErrNotExist) {
			a.log.Warn("a temporary cannot be removed", "name", partName(h), "error", err)
		}
	}
}
