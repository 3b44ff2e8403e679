package db

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"iter"
	"math"
	"slices"
	"strings"
)

// A Copied is a table that Copy has copied.
type Copied struct {
	Table string
	Rows  int64
}

// Copy replaces the rows of a database's tables with the rows of another database, of either kind,
// in one transaction: all of them, or nothing. The tables of the two databases must result from the
// same Migrate calls; otherwise it refuses. Earlier rows of the destination's tables are removed.
// Rows are copied in the order of their keys, and the two databases are read and compared
// afterwards; the numbers of {{id}} columns continue after their last values. No process else may
// write to either meanwhile. No more than a few rows are in memory. tell, if it is not nil, is
// called before each table.
func Copy(ctx context.Context, from, to *DB, tell func(table string)) (all []Copied, err error) {
	err = from.Read(ctx, func(src *Tx) error {
		return to.Write(ctx, func(dst *Tx) error {
			all, err = copyTables(src, dst, tell)
			return err
		})
	})
	return all, err
}

func copyTables(src, dst *Tx, tell func(string)) (all []Copied, err error) {
	tables, err := sameTables(src, dst)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		if tell != nil {
			tell(t.name)
		}
		n, err := t.copy(src, dst)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", t.name, err)
		}
		all = append(all, Copied{t.name, n})
	}
	return all, nil
}

// Tables returns the names of all tables of the database, except the tables in which Migrate
// records its files.
func (t *Tx) Tables() ([]string, error) {
	query := "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name <> 'schema_files' ORDER BY name"
	if t.Dialect() == PostgreSQL {
		query = `SELECT CAST(table_name AS TEXT) COLLATE "C" FROM information_schema.tables
			WHERE table_schema = current_schema() AND table_name <> 'schema_files' ORDER BY 1`
	}
	return Column[string](t, query)
}

// A table is one as its database describes it.
type table struct {
	name    string
	columns []string
	bools   []bool   // columns that are BOOLEAN, which SQLite keeps as numbers
	key     []string // the columns of its primary key
}

// sameTables returns the tables of two databases, which must be the same.
func sameTables(src, dst *Tx) (all []table, err error) {
	const files = "SELECT package || ' ' || file || ' ' || sha256 FROM schema_files ORDER BY package, place"
	was, err := Column[string](src, files)
	if err != nil {
		return nil, err
	}
	is, err := Column[string](dst, files)
	if err != nil {
		return nil, err
	}
	here, err := src.Tables()
	if err != nil {
		return nil, err
	}
	there, err := dst.Tables()
	if err != nil {
		return nil, err
	}
	if !slices.Equal(was, is) || !slices.Equal(here, there) {
		return nil, fmt.Errorf("the databases do not have the same tables: %s, and %s", strings.Join(here, ", "), strings.Join(there, ", "))
	}
	for _, name := range here {
		t, err := tableOf(src, name)
		if err != nil {
			return nil, err
		}
		other, err := tableOf(dst, name)
		if err != nil {
			return nil, err
		}
		if !slices.Equal(t.columns, other.columns) || !slices.Equal(t.bools, other.bools) || !slices.Equal(t.key, other.key) || len(t.key) == 0 {
			return nil, fmt.Errorf("table %s is not the same in both databases: %v by %v, and %v by %v", name, t.columns, t.key,
				other.columns, other.key)
		}
		all = append(all, t)
	}
	return all, nil
}

func tableOf(tx *Tx, name string) (table, error) {
	query := "SELECT name, pk, type = 'BOOLEAN' FROM pragma_table_info(?) ORDER BY cid"
	if tx.Dialect() == PostgreSQL {
		query = `SELECT CAST(c.column_name AS TEXT), CAST(COALESCE(k.ordinal_position, 0) AS BIGINT), c.data_type = 'boolean'
			FROM information_schema.columns c
			LEFT JOIN information_schema.table_constraints p ON p.table_schema = c.table_schema AND p.table_name = c.table_name
				AND p.constraint_type = 'PRIMARY KEY'
			LEFT JOIN information_schema.key_column_usage k ON k.constraint_schema = p.constraint_schema
				AND k.constraint_name = p.constraint_name AND k.table_name = c.table_name AND k.column_name = c.column_name
			WHERE c.table_schema = current_schema() AND c.table_name = ? ORDER BY c.ordinal_position`
	}
	t := table{name: name}
	keys := map[int64]string{}
	rows, err := tx.Query(query, name)
	if err != nil {
		return t, err
	}
	for rows.Next() {
		var column string
		var place int64
		var truth bool
		if err := rows.Scan(&column, &place, &truth); err != nil {
			return t, err
		}
		t.columns, t.bools = append(t.columns, column), append(t.bools, truth)
		if place > 0 {
			keys[place] = column
		}
	}
	for i := range len(keys) {
		t.key = append(t.key, keys[int64(i)+1])
	}
	return t, rows.Err()
}

// copy copies the rows of one table.
func (t *table) copy(src, dst *Tx) (n int64, err error) {
	if _, err = dst.Exec("DELETE FROM " + t.name); err != nil {
		return 0, err
	}
	was, is := sha256.New(), sha256.New()
	var failed error
	n, err = dst.Bulk(t.name, t.columns, t.rows(src, was, &failed))
	if failed != nil {
		err = failed
	}
	if err != nil {
		return 0, err
	}
	var there int64
	for range t.rows(dst, is, &failed) {
		there++
	}
	switch {
	case failed != nil:
		return 0, failed
	case there != n:
		return 0, fmt.Errorf("%d rows were copied, and %d are there", n, there)
	case string(was.Sum(nil)) != string(is.Sum(nil)):
		return 0, fmt.Errorf("what is there of %d rows is not what was copied", n)
	}
	return n, t.advanceID(src, dst)
}

// rows yields the rows of a table in the order of its key, and adds them to a sum.
func (t *table) rows(tx *Tx, sum hash.Hash, failed *error) iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		rows, err := tx.Query("SELECT " + strings.Join(t.columns, ", ") + " FROM " + t.name + " ORDER BY " + strings.Join(t.key, ", "))
		if err != nil {
			*failed = err
			return
		}
		defer func() {
			if err := rows.Close(); *failed == nil {
				*failed = err
			}
		}()
		values, at := make([]any, len(t.columns)), make([]any, len(t.columns))
		for i := range values {
			at[i] = &values[i]
		}
		var line []byte
		for rows.Next() {
			if *failed = rows.Scan(at...); *failed != nil {
				return
			}
			t.same(values)
			if line, *failed = appendValues(line[:0], values); *failed != nil {
				return
			}
			sum.Write(line) // never fails
			if !yield(values) {
				return
			}
		}
	}
}

// same converts the values of a row to the same types, whether SQLite or PostgreSQL returned them.
func (t *table) same(values []any) {
	for i, v := range values {
		switch v := v.(type) {
		case int64:
			if t.bools[i] {
				values[i] = v != 0
			}
		case []byte:
			if v == nil {
				values[i] = []byte{} // of no length: nil would be written as NULL
			}
		}
	}
}

// appendValues appends an encoding of values that differs for different values.
func appendValues(line []byte, values []any) ([]byte, error) {
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			line = append(line, 'n')
		case bool:
			line = append(line, 'b', '0')
			if v {
				line[len(line)-1] = '1'
			}
		case int64:
			line = binary.BigEndian.AppendUint64(append(line, 'i'), uint64(v))
		case float64:
			line = binary.BigEndian.AppendUint64(append(line, 'f'), math.Float64bits(v))
		case string:
			line = append(binary.BigEndian.AppendUint64(append(line, 's'), uint64(len(v))), v...)
		case []byte:
			line = append(binary.BigEndian.AppendUint64(append(line, 'x'), uint64(len(v))), v...)
		default:
			return nil, fmt.Errorf("a value of type %T cannot be copied", v)
		}
	}
	return line, nil
}

// advanceID sets the next number of an {{id}} column to the number after the last used number.
func (t *table) advanceID(src, dst *Tx) error {
	last, counted, err := t.last(src)
	if err != nil || !counted {
		return err
	}
	if dst.Dialect() == PostgreSQL {
		_, err = dst.Exec("SELECT setval(pg_get_serial_sequence(?, ?), ?, ?)", t.name, t.key[0], max(last, 1), last > 0)
		return err
	}
	if _, err = dst.Exec("DELETE FROM sqlite_sequence WHERE name = ?", t.name); err == nil {
		_, err = dst.Exec("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", t.name, last)
	}
	return err
}

// last returns the last number that was given in an {{id}} column; counted is false for a table
// without such a column.
func (t *table) last(tx *Tx) (n int64, counted bool, err error) {
	if tx.Dialect() == SQLite {
		var made string
		if err = tx.Row("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", t.name).Scan(&made); err != nil ||
			!strings.Contains(made, "AUTOINCREMENT") {
			return 0, false, err
		}
		err = tx.Row("SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = ?", t.name).Scan(&n)
		return n, true, err
	}
	var sequence string
	if err = tx.Row("SELECT COALESCE(pg_get_serial_sequence(?, ?), '')", t.name, t.key[0]).Scan(&sequence); err != nil || sequence == "" {
		return 0, false, err
	}
	err = tx.Row("SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM " + sequence).Scan(&n)
	return n, true, err
}
