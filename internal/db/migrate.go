package db

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Migrate brings the tables of the package called name up to date: it runs the files *.sql of the
// file system's top folder that have not been run before, in the order of their names, each in a
// transaction: 001_first.sql, 002_more.sql. Files are in the SQL of this package, statements end
// with a semicolon at the end of a line, and comments are lines that begin with --. A file of a
// release is never changed: a database with another version of a file is refused, and so is a
// database with more files than this program has. It may be called by several processes at once.
func (d *DB) Migrate(ctx context.Context, name string, files fs.FS) error {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return err
	}
	slices.Sort(names)
	if err := d.Write(ctx, ledger); err != nil {
		return fmt.Errorf("tables of %s: %w", name, err)
	}
	for i, file := range names {
		text, err := fs.ReadFile(files, file)
		if err != nil {
			return err
		}
		if err := d.Write(ctx, func(t *Tx) error { return migrate(t, name, i, file, string(text)) }); err != nil {
			return fmt.Errorf("tables of %s: %s: %w", name, file, err)
		}
	}
	return d.Read(ctx, func(t *Tx) error {
		var last string
		err := t.Row("SELECT file FROM schema_files WHERE package = ? AND place >= ? ORDER BY place DESC", name, len(names)).Scan(&last)
		if err == nil {
			return fmt.Errorf("tables of %s: the database was made by a newer version of this program (%s): use that", name, last)
		}
		if errors.Is(err, ErrNone) {
			return nil
		}
		return err
	})
}

// ledger creates the table of the files that have been run.
func ledger(t *Tx) error {
	if err := turn(t); err != nil {
		return err
	}
	_, err := t.Exec("CREATE TABLE IF NOT EXISTS schema_files (package {{text}} NOT NULL, place BIGINT NOT NULL, file {{text}} NOT NULL, " +
		"sha256 {{text}} NOT NULL, PRIMARY KEY (package, place))")
	return err
}

// turn makes processes that change tables wait for each other.
func turn(t *Tx) error {
	if t.Dialect() != PostgreSQL {
		return nil
	}
	_, err := t.Exec("SELECT pg_advisory_xact_lock(8241977126532)")
	return err
}

func migrate(t *Tx, name string, place int, file, text string) error {
	if err := turn(t); err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(text))
	want := hex.EncodeToString(sum[:])
	var known, had string
	err := t.Row("SELECT file, sha256 FROM schema_files WHERE package = ? AND place = ?", name, place).Scan(&had, &known)
	switch {
	case err == nil && (had != file || known != want):
		return fmt.Errorf("the database has the tables (%s) of a version before the first release, which this program does not read: "+
			"use a new database", had)
	case err == nil:
		return nil
	case !errors.Is(err, ErrNone):
		return err
	}
	for _, statement := range statements(text) {
		if _, err := t.Exec(statement); err != nil {
			return err
		}
	}
	_, err = t.Exec("INSERT INTO schema_files (package, place, file, sha256) VALUES (?, ?, ?, ?)", name, place, file, want)
	return err
}

// statements splits a file.
func statements(text string) []string {
	var all []string
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" || strings.HasPrefix(strings.TrimSpace(line), "--") {
			continue
		}
		end := strings.HasSuffix(line, ";")
		b.WriteString(strings.TrimSuffix(line, ";") + "\n")
		if end {
			all = append(all, b.String())
			b.Reset()
		}
	}
	if strings.TrimSpace(b.String()) != "" {
		all = append(all, b.String())
	}
	return all
}
