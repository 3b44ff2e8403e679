package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"weir/transfer/mover"
)

// rootedName is a file in a state folder outside the root: it says that the root
// had the folder of temporaries already.
const rootedName = "rooted"

// wasRooted refuses a root without the folder of temporaries that it had when this
// state was last used: its storage is not mounted, and files would end up below it.
func (a *Agent) wasRooted() error {
	if a.o.State == "" {
		return nil // the state is in the root: it is a new one
	}
	_, noMark := os.Stat(filepath.Join(a.state, rootedName))
	if noMark == nil && !a.mounted() {
		return fmt.Errorf("root of the site: %w (if it is to begin anew, remove %s)", a.notMounted(), filepath.Join(a.state, rootedName))
	}
	return nil
}

// isRooted notes that the root has it now.
func (a *Agent) isRooted() error {
	if a.o.State == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(a.state, rootedName), []byte("the root has a folder "+mover.Hidden+"\n"), 0o600)
}

// mounted tells whether the root is what it was when the agent began.
func (a *Agent) mounted() bool {
	_, err := os.Stat(filepath.Join(a.o.Root, mover.Hidden))
	return !errors.Is(err, os.ErrNotExist)
}

func (a *Agent) notMounted() error {
	return fmt.Errorf("the folder %s is gone from the root of site %s: is its storage mounted?", mover.Hidden, a.o.Site)
}
