package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"weir/internal/db"
	"weir/transfer/queue"
)

// MoveDB copies the database of a coordinator into another database, of either kind, in one
// transaction as db.Copy does. from "" is the database in the state folder. The source is not
// changed. MoveDB refuses databases that a coordinator uses, a source that does not belong to a
// coordinator, and a destination that is not empty. The keys and tokens in the state folder stay
// valid. tell, if it is not nil, is called before each table.
func MoveDB(ctx context.Context, state, from, to string, tell func(table string)) (all []db.Copied, err error) {
	from = address(state, from)
	if path, isFile := fileOf(from); isFile {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("source database: %w", err)
		}
	}
	src, known, err := openClaimed(ctx, from)
	if err != nil {
		return nil, fmt.Errorf("source database: %w", err)
	}
	defer func() { err = errors.Join(err, src.close()) }()
	if _, is := known["request"]; !is {
		return nil, fmt.Errorf("%s is not the database of a coordinator", src)
	}
	dst, rows, err := openClaimed(ctx, to)
	if err != nil {
		return nil, fmt.Errorf("destination database: %w", err)
	}
	defer func() { err = errors.Join(err, dst.close()) }()
	for table, n := range rows {
		if _, ours := known[table]; !ours || n > 0 && !slices.Contains([]string{"counter", "event_last", "thinned"}, table) {
			return nil, fmt.Errorf("%s is not empty: it has a table %s with %d rows: use an empty database", dst, table, n)
		}
	}
	for _, d := range []*claimed{src, dst} {
		if _, _, err := migrate(ctx, d.DB, queue.Options{}); err != nil {
			return nil, fmt.Errorf("%s: %w", d, err)
		}
	}
	return db.Copy(ctx, src.DB, dst.DB, tell)
}

// fileOf returns the file of a database address, unless it is the address of a server.
func fileOf(address string) (path string, isFile bool) {
	if scheme, rest, ok := strings.Cut(address, ":"); ok && (scheme == "sqlite" || strings.HasPrefix(rest, "//")) {
		return rest, scheme == "sqlite"
	}
	return address, true
}

// A claimed database is not used by a coordinator.
type claimed struct {
	*db.DB
	claim *db.Claim
}

// openClaimed opens and claims a database, and counts the rows of its tables.
func openClaimed(ctx context.Context, address string) (a *claimed, rows map[string]int64, err error) {
	d, err := db.Open(ctx, address, db.Options{})
	if err == nil {
		a = &claimed{DB: d}
		if a.claim, err = d.Claim(ctx, claimName, processName()); err == nil {
			if rows, err = a.rows(ctx); err == nil {
				return a, rows, nil
			}
			err = errors.Join(err, a.claim.Close())
		}
		err = errors.Join(err, d.Close())
	}
	if errors.Is(err, db.ErrTaken) {
		err = fmt.Errorf("%w: end that first", err)
	}
	return nil, nil, err
}

func (a *claimed) close() error { return errors.Join(a.claim.Close(), a.Close()) }

func (a *claimed) rows(ctx context.Context) (all map[string]int64, err error) {
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
