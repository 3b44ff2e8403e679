package chaos

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"weir/internal/content"
	"weir/transfer"
)

// A verdict is the sum of the results of all files.
type verdict struct {
	done, there, named, attempts int64
	late                         int64 // attempts that came too late to change anything
	moved, resumed, useful       int64 // bytes
	lateBytes                    int64
	by                           map[transfer.Mode]int64 // bytes moved
	ended                        map[transfer.Status]int
	settled                      time.Duration // from the end of all trouble
}

// judge reads the folders of the sites and compares them with the reports of weir.
func (w *world) judge(v *verdict) {
	v.by = map[transfer.Mode]int64{}
	v.ended = map[transfer.Status]int{}
	items := map[int64]transfer.Item{}
	for _, s := range w.sets {
		for _, id := range []int64{s.id, s.again} {
			if id != 0 {
				w.judgeRequest(s, id, v, items)
			}
		}
	}
	w.judgeStays()
	w.judgeParts(items)
	w.judgeLogs()
	w.judgeAbroad()
	w.judgeCrowd()
}

// judgeRequest compares the manifest of a request for a set with the files.
func (w *world) judgeRequest(s *set, id int64, v *verdict, items map[int64]transfer.Item) {
	m, err := w.ask.Manifest(w.t.Context(), id)
	if err != nil {
		w.t.Error(err)
		return
	}
	by := map[string]transfer.Item{}
	for _, i := range m.Items {
		items[i.ID], by[i.Name] = i, i
	}
	v.ended[m.Request.Status]++
	w.judgeCounts(s, m, v)
	for _, f := range s.files {
		i, known := by[f.name]
		if !known {
			w.t.Errorf("%s is not in the manifest", f.name)
			continue
		}
		w.judgeFile(s, f, i)
	}
}

// judgeCounts compares the sums of a request with its files and attempts.
func (w *world) judgeCounts(s *set, m transfer.Manifest, v *verdict) {
	t, c := w.t, m.Request.Count
	tries, err := w.ask.Attempts(t.Context(), m.Request.ID, 0, 10_000)
	if err != nil {
		t.Error(err)
	}
	current := int64(0)
	won := map[int64]int{}
	for _, a := range tries {
		v.moved += a.Moved
		v.resumed += a.Resumed
		v.by[a.Mode] += a.Moved
		if a.Late {
			v.late++
			v.lateBytes += a.Moved
			continue
		}
		current++
		if a.Fault == "" {
			won[a.Item]++
		}
		if strings.Contains(a.Reason, "eyJ") {
			t.Errorf("%s: an attempt's reason has a token", s.name)
		}
	}
	v.attempts += current
	var sum transfer.Counts
	for _, i := range m.Items {
		sum.Files++
		sum.Bytes += i.Size
		switch i.State {
		case transfer.Done:
			sum.Done++
			sum.DoneBytes += i.Size
			if won[i.ID] != 1 {
				t.Errorf("%s is done, and %d attempts say so", i.Name, won[i.ID])
			}
			v.useful += i.Size
		case transfer.Skipped:
			sum.Skipped++
			sum.DoneBytes += i.Size
			v.there++
		case transfer.FileFailed:
			sum.Failed++
		case transfer.FileCancelled:
			sum.Cancelled++
		default:
			t.Errorf("%s: %s in a request that is %s", i.Name, i.State, m.Request.Status)
		}
	}
	sum.Attempts = current
	v.done += sum.Done
	v.named += sum.Failed + sum.Cancelled
	if sum != c {
		t.Errorf("%s counts %+v, its files and attempts are %+v", s.name, c, sum)
	}
	if all := sum.Done+sum.Skipped == sum.Files; all != (m.Request.Status == transfer.Completed) {
		t.Errorf("%s is %s: %+v", s.name, m.Request.Status, sum)
	}
	if int(sum.Files) != len(s.files) {
		t.Errorf("%s has %d files, not %d", s.name, sum.Files, len(s.files))
	}
}

// judgeFile compares the reported state of a file with the file at its destination, and with the
// injected faults.
func (w *world) judgeFile(s *set, f *file, i transfer.Item) {
	t, said := w.t, fmt.Sprintf("%s to %s (%s, %s, %q)", f.name, s.to, i.State, i.Fault, i.Reason)
	path := w.path(s.to, f)
	there := w.right(path, f)
	switch i.State {
	case transfer.Done, transfer.Skipped:
		if there != nil {
			t.Errorf("%s: %v", said, there)
		}
		if f.foreign || f.hopeless() {
			t.Errorf("%s: there is nothing that could have been copied", said)
		}
		return
	}
	if i.Reason == "" {
		t.Errorf("%s: without a reason", said)
	}
	if f.foreign {
		if i.Fault != transfer.Occupied {
			t.Errorf("%s: another file has its name there", said)
		}
		return
	}
	if there == nil {
		t.Errorf("%s: it is there, and right", said)
	} else if !os.IsNotExist(there) {
		t.Errorf("%s: what is there is wrong: %v", said, there)
	}
	if f.giant {
		if i.State != transfer.FileCancelled {
			t.Errorf("%s: its request was cancelled", said)
		}
		if !strings.Contains(i.Reason, " free") {
			t.Errorf("%s: it does not fit", said)
		}
		return
	}
	if f.sound() {
		t.Errorf("%s: there is a good copy at one of %v (bad: %v, later: %v)", said, f.from, f.flaws, f.later)
		return
	}
	if i.Fault != transfer.SourceBad && i.Fault != transfer.Checksum {
		t.Errorf("%s: its copies are bad (%v %v)", said, f.flaws, f.later)
	}
	for _, site := range f.from {
		how := f.flaws[site]
		later := how == good
		if later {
			how = w.turned[w.path(site, f)]
		}
		if how == good {
			t.Errorf("%s: nothing was wrong with the copy at %s", said, site)
		} else if !blames(i.Reason, site, how) && (!later || !blames(i.Reason, site, spoiled)) { // its size was right when reading began
			t.Errorf("%s: the copy at %s is %s", said, site, how)
		}
	}
}

// blames reports whether a reason describes the flaw of a site's copy.
func blames(reason, site string, how flaw) bool {
	for part := range strings.SplitSeq("; "+reason, "; ") {
		if !strings.HasPrefix(part, site+":") && !strings.HasPrefix(part, site+" was not asked:") {
			continue
		}
		words := map[flaw][]string{missing: {"no such file", "not there", "missing", "404", "has no", "does not have", "not found"},
			short: {"bytes", " B", "size", "kB", "KiB", "MB"}, long: {"bytes", " B", "size"}, spoiled: {"adler32", "checksum"}}[how]
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(part, word) })
	}
	return false
}

// right returns an error unless the file at a path has a file's bytes.
func (w *world) right(path string, f *file) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if int64(len(data)) != f.size || !content.Equal(data, f.seed, 0) {
		return fmt.Errorf("%d bytes of %d, and not the right ones", len(data), f.size)
	}
	return nil
}

// judgeStays checks that files which must not be changed are unchanged.
func (w *world) judgeStays() {
	for path, was := range w.before {
		info, err := os.Stat(path)
		if err != nil {
			w.t.Errorf("a good copy is gone: %v", err)
			continue
		}
		if inode := info.Sys().(*syscall.Stat_t).Ino; inode != was.inode {
			w.t.Errorf("%s was replaced", path)
		}
		if data, err := os.ReadFile(path); was.data != nil && (err != nil || !bytes.Equal(data, was.data)) {
			w.t.Errorf("%s was changed: %v", path, err)
		}
	}
	for _, s := range w.sets {
		for _, f := range s.files {
			for _, site := range f.from {
				if path := w.path(site, f); f.flaws[site] == good && w.turned[path] == good {
					if err := w.right(path, f); err != nil {
						w.t.Errorf("the good copy of %s at %s: %v", f.name, site, err)
					}
				}
			}
		}
	}
}

// judgeParts checks that no temporary files are left that no attempt will continue with. It waits a
// while, until agents have been notified.
func (w *world) judgeParts(items map[int64]transfer.Item) {
	left := w.useless(items)
	for end := time.Now().Add(time.Minute); len(left) > 0 && time.Now().Before(end); left = w.useless(items) {
		time.Sleep(200 * time.Millisecond)
	}
	for _, one := range left {
		w.t.Error("left: ", one)
	}
}

func (w *world) useless(items map[int64]transfer.Item) (left []string) {
	for _, site := range sites {
		for _, path := range w.parts(site) {
			var item, epoch int64
			_, err := fmt.Sscanf(filepath.Base(path), "%d.%d.part", &item, &epoch)
			i, known := items[item]
			if err != nil || !known || i.State != transfer.FileFailed {
				left = append(left, fmt.Sprintf("%s at %s: %s, %q", filepath.Base(path), site, i.Name, i.State))
			}
		}
	}
	return left
}

// judgeLogs checks that the logs contain no secrets.
func (w *world) judgeLogs() {
	secrets := []string{"eyJ"}
	for _, name := range []string{"token-A", "token-B", "token-C", "token-D"} {
		if raw, err := os.ReadFile(filepath.Join(w.Dir(), name)); err == nil {
			secrets = append(secrets, strings.TrimSpace(string(raw)))
		}
	}
	if w.pg != nil {
		if u, err := url.Parse(w.pg.URL); err == nil {
			password, _ := u.User.Password()
			secrets = append(secrets, password)
		}
	}
	bad := regexp.MustCompile(`(?i)database is locked|database table is locked|sqlite_busy|deadlock|40P01|panic:|goroutine \d+ \[|fatal error`)
	for name, text := range w.logs() {
		for line := range strings.Lines(text) {
			if bad.MatchString(line) {
				w.t.Errorf("%s: %s", name, line)
			}
			for _, s := range secrets {
				if strings.Contains(line, s) {
					w.t.Errorf("%s has a secret", name)
				}
			}
		}
	}
}
