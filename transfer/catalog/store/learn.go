package store

import "weir/internal/db"

// A Learned is the checksum of a file that was registered without one, as who
// copied or checked it has read it.
type Learned struct {
	File  int64
	Adler string // 8 hex digits
	By    string
}

// Learn writes checksums down that the catalog does not have. Those that it has stay.
func Learn(t *db.Tx, all []Learned) error {
	_, err := t.Many("UPDATE file SET adler = ?, adler_by = ? WHERE id = ? AND adler = ''", func(yield func([]any) bool) {
		for _, l := range all {
			if !yield([]any{l.Adler, l.By, l.File}) {
				return
			}
		}
	})
	return err
}

// Checksums returns those that the catalog has of files, by number, and locks the
// files: of two who read different ones at once, the second is told.
func Checksums(t *db.Tx, files []int64) (map[int64]string, error) {
	known := map[int64]string{}
	if len(files) == 0 {
		return known, nil
	}
	_, err := db.All(t, func(rows *db.Rows) (id int64, err error) {
		var adler string
		err = rows.Scan(&id, &adler)
		known[id] = adler
		return id, err
	}, "SELECT id, adler FROM file WHERE id {{in}} ORDER BY id {{lock}}", files)
	return known, err
}
