package mover

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"weir/internal/lock"
)

const (
	madeName = "mover.parts" // in the state folder: the temporaries that were made, one ITEM.EPOCH a line
	madeMax  = 1 << 20       // bytes of the list from which it is rewritten without the removed temporaries
)

// made is the list of the temporaries that Movers of this state folder have made, so that a Mover
// finds the temporaries of a killed Mover, and never removes other files. The list is locked: a
// state folder has one Mover at a time.
type made struct {
	root  *os.Root // of the site
	state *os.Root
	mu    sync.Mutex
	file  *os.File
	bytes int
}

// openMade reads the list and returns, by item, the latest part that exists.
func openMade(root *os.Root, folder string) (m *made, kept map[int64]int64, err error) {
	if err := root.Mkdir(Hidden, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, nil, fmt.Errorf("the root must have a folder %s, for files on their way: %w", Hidden, err)
	}
	m = &made{root: root}
	if folder == "" {
		m.state, err = root.OpenRoot(Hidden)
	} else {
		m.state, err = os.OpenRoot(folder)
	}
	if err != nil {
		return nil, nil, err
	}
	if m.file, err = m.state.OpenFile(madeName, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, nil, errors.Join(err, m.state.Close())
	}
	if err := lock.Alone(m.file); errors.Is(err, lock.ErrTaken) {
		return nil, nil, errors.Join(fmt.Errorf("another mover works in %s", m.state.Name()), m.close())
	}
	if kept, err = m.read(); err != nil {
		return nil, nil, errors.Join(err, m.close())
	}
	return m, kept, nil
}

func (m *made) close() error { return errors.Join(lock.Close(m.file), m.state.Close()) }

// read reads the list. Of several parts of an item only the latest is kept.
func (m *made) read() (map[int64]int64, error) {
	kept := map[int64]int64{}
	lines := bufio.NewScanner(m.file)
	for lines.Scan() {
		m.bytes += len(lines.Bytes()) + 1
		var item, epoch int64
		if n, err := fmt.Sscanf(lines.Text(), "%d.%d", &item, &epoch); n != 2 || err != nil {
			continue // cut short by a kill: its part was not made yet
		}
		if _, err := m.root.Lstat(partName(item, epoch)); err != nil {
			continue
		}
		if before, two := kept[item]; two {
			m.remove(item, min(before, epoch))
			epoch = max(before, epoch)
		}
		kept[item] = epoch
	}
	return kept, lines.Err()
}

// note records that a part is going to be made.
func (m *made) note(item, epoch int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := fmt.Fprintf(m.file, "%d.%d\n", item, epoch)
	m.bytes += n
	return err
}

// long reports whether the list should be shortened.
func (m *made) long() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes > madeMax
}

// shorten rewrites the list with only the parts in stay. No other goroutine may call note during
// that time.
func (m *made) shorten(stay map[int64]int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var lines []byte
	for item, epoch := range stay {
		lines = fmt.Appendf(lines, "%d.%d\n", item, epoch)
	}
	if err := m.file.Truncate(0); err != nil {
		return err
	}
	_, err := m.file.Write(lines)
	m.bytes = len(lines)
	return err
}

// remove removes a part and its state.
func (m *made) remove(item, epoch int64) {
	_ = m.root.Remove(partName(item, epoch)) // a part that cannot be removed stays in the list
	_ = m.state.Remove(stateName(item, epoch))
}

func stateName(item, epoch int64) string { return fmt.Sprintf("%d.%d.state", item, epoch) }

// Drop removes the data that attempts at an item left: it will not be resumed. Drop does nothing
// while an attempt at the item runs.
func (m *Mover) Drop(item int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	epoch, there := m.kept[item]
	if there && m.active[item] == nil {
		m.made.remove(item, epoch)
		delete(m.kept, item)
	}
}
