package coordinator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/db"
	"weir/transfer/catalog/store"
	"weir/transfer/queue"
)

// MoveDB copies all that a coordinator keeps in one database into another one, of
// either kind, as db.Copy does: all of it and exactly, or nothing. from "" is the
// database in the state folder. The source stays as it is. It refuses while a
// coordinator has one of them, a source that is no coordinator's, and a destination
// in which anything is. Keys and tokens are not in databases: the coordinator goes
// on with the same state folder. tell, if it is not nil, is called before each
// table.
func MoveDB(ctx context.Context, state, from, to string, tell func(table string)) (all []db.Copied, err error) {
	if from == "" {
		from = "sqlite:" + filepath.Join(state, tableFile)
	}
	if path, isFile := fileOf(from); isFile {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("the database to be copied: %w", err)
		}
	}
	src, err := openAlone(ctx, from)
	if err != nil {
		return nil, fmt.Errorf("the database to be copied: %w", err)
	}
	defer func() { err = errors.Join(err, src.close()) }()
	known, err := src.rows(ctx)
	if err != nil {
		return nil, err
	}
	if _, is := known["request"]; !is {
		return nil, fmt.Errorf("%s: this is no coordinator's database", src)
	}
	dst, err := openAlone(ctx, to)
	if err != nil {
		return nil, fmt.Errorf("the database to be copied to: %w", err)
	}
	defer func() { err = errors.Join(err, dst.close()) }()
	there, err := dst.rows(ctx)
	if err != nil {
		return nil, err
	}
	for table, n := range there {
		if _, ours := known[table]; !ours || n > 0 && !slices.Contains([]string{"counter", "event_last"}, table) {
			return nil, fmt.Errorf("%s is not empty: it has a table %s with %d rows: name one that is", dst, table, n)
		}
	}
	for _, d := range []*alone{src, dst} {
		if err := makeTables(ctx, d.DB); err != nil {
			return nil, fmt.Errorf("%s: %w", d, err)
		}
	}
	return db.Copy(ctx, src.DB, dst.DB, tell)
}

// fileOf is the file of an address, unless that is a server's.
func fileOf(address string) (path string, isFile bool) {
	if scheme, rest, ok := strings.Cut(address, ":"); ok && (scheme == "sqlite" || strings.HasPrefix(rest, "//")) {
		return rest, scheme == "sqlite"
	}
	return address, true
}

// makeTables makes a coordinator's tables, or brings them up to date.
func makeTables(ctx context.Context, d *db.DB) error {
	if _, err := store.Open(ctx, d); err != nil {
		return err
	}
	if _, err := queue.Open(ctx, d, queue.Options{}); err != nil {
		return err
	}
	return d.Migrate(ctx, "coordinator", schema())
}

// An alone is a database that no coordinator has.
type alone struct {
	*db.DB
	claim *db.Claim
}

func openAlone(ctx context.Context, address string) (*alone, error) {
	d, err := db.Open(ctx, address, db.Options{})
	if err == nil {
		a := &alone{DB: d}
		if a.claim, err = d.Claim(ctx, "weir coordinator", self()); err == nil {
			return a, nil
		}
		err = errors.Join(err, d.Close())
	}
	if errors.Is(err, db.ErrTaken) {
		err = fmt.Errorf("%w: end that first", err)
	}
	return nil, err
}

func (a *alone) close() error { return errors.Join(a.claim.Close(), a.Close()) }

// rows counts those of each table.
func (a *alone) rows(ctx context.Context) (all map[string]int64, err error) {
	err = a.Read(ctx, func(tx *db.Tx) error {
		all = map[string]int64{}
		names, err := tx.Tables()
		for _, name := range names {
			var n int64
			if err == nil {
				err = tx.Row(`SELECT COUNT(*) FROM "` + strings.ReplaceAll(name, `"`, `""`) + `"`).Scan(&n)
			}
			all[name] = n
		}
		return err
	})
	return all, err
}
