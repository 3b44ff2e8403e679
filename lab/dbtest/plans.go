package dbtest

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"weir/internal/db"
)

// Plans are the statements that a database has run: Add is its Options.Seen. It may be used by many goroutines at once.
type Plans struct {
	mu   sync.Mutex
	args map[string][]any // of the first run of each statement
}

// Add adds a statement.
func (p *Plans) Add(query string, args []any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.args == nil {
		p.args = map[string][]any{}
	}
	if _, known := p.args[query]; !known {
		p.args[query] = slices.Clone(args)
	}
}

// Scans explains the statements, and returns the statements that may read all rows of a table, or
// of a wide index without a limit: by statement, with the step of the plan that does so. Tables and
// indexes that are small by their nature are named in small; skip leaves statements out.
func (p *Plans) Scans(d *db.DB, small, wide []string, skip func(query string) bool) (map[string]string, error) {
	p.mu.Lock()
	all := maps.Clone(p.args)
	p.mu.Unlock()
	found := map[string]string{}
	for _, query := range slices.Sorted(maps.Keys(all)) {
		first, _, _ := strings.Cut(strings.TrimSpace(query), " ")
		if !slices.Contains([]string{"SELECT", "WITH", "UPDATE", "DELETE", "INSERT"}, first) || skip(query) {
			continue
		}
		err := d.Write(context.Background(), func(tx *db.Tx) error {
			lines, err := explain(tx, query, all[query])
			for _, line := range lines {
				table, whole := scanned(tx.Dialect(), line)
				by := index(line)
				if slices.Contains(wide, by) {
					whole = !strings.Contains(query, " LIMIT ")
				}
				if whole && !slices.Contains(small, alias(query, table)) && !slices.Contains(small, by) {
					found[query] = line
				}
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", query, err)
		}
	}
	return found, nil
}

// explain returns the steps of a plan that read a table.
func explain(tx *db.Tx, query string, args []any) (steps []string, err error) {
	if tx.Dialect() == db.SQLite {
		return db.All(tx, func(r *db.Rows) (line string, err error) {
			var a, b, c int64
			return line, r.Scan(&a, &b, &c, &line)
		}, "EXPLAIN QUERY PLAN "+query, args...)
	}
	// Tests have small tables, which are read whole: is there an index?
	if _, err := tx.Exec("SET LOCAL enable_seqscan = off"); err != nil {
		return nil, err
	}
	lines, err := db.Column[string](tx, "EXPLAIN "+query, args...)
	for _, line := range lines {
		switch {
		case strings.Contains(line, " Scan "):
			steps = append(steps, strings.TrimLeft(line, "-> "))
		case strings.Contains(line, "Index Cond:") && len(steps) > 0:
			steps[len(steps)-1] += "; " + strings.TrimSpace(line)
		}
	}
	return steps, err
}

var (
	liteScan  = regexp.MustCompile(`^SCAN (\w+)`)
	liteRange = regexp.MustCompile(`^SEARCH (\w+) USING .*\(\w+[<>]\?\)`) // from or up to a value only
	pgScan    = regexp.MustCompile(`^Seq Scan on (\w+)`)
	pgIndex   = regexp.MustCompile(`^(?:Parallel )?Index (?:Only )?Scan (?:Backward )?using \w+ on (\w+)`)
	pgBitmap  = regexp.MustCompile(`^Bitmap Index Scan on (\w+)`)
	pgRange   = regexp.MustCompile(`Index Cond: \(\w+ (?:<|>|<=|>=) \S+\)$`)
	indexName = regexp.MustCompile(`(?:USING (?:COVERING )?INDEX|using|Bitmap Index Scan on) (\w+)`)
	tableName = regexp.MustCompile(`(?i)\b(?:FROM|JOIN|UPDATE|INTO) (\w+)(?: (\w+))?`)
)

// scanned returns the table that a step of a plan reads, and whether it may read all of its rows, or all of an index.
func scanned(d db.Dialect, step string) (table string, whole bool) {
	if d == db.SQLite {
		for _, e := range []*regexp.Regexp{liteScan, liteRange} {
			if m := e.FindStringSubmatch(step); m != nil {
				return m[1], !strings.Contains(step, "VIRTUAL TABLE") && m[1] != "CONSTANT"
			}
		}
		return "", false
	}
	if m := pgScan.FindStringSubmatch(step); m != nil {
		return m[1], true
	}
	for _, e := range []*regexp.Regexp{pgIndex, pgBitmap} {
		if m := e.FindStringSubmatch(step); m != nil {
			return m[1], !strings.Contains(step, "Index Cond:") || pgRange.MatchString(step)
		}
	}
	return "", false
}

func index(step string) string {
	if m := indexName.FindStringSubmatch(step); m != nil {
		return m[1]
	}
	return ""
}

// alias returns the table that a query has under a name.
func alias(query, name string) string {
	for _, m := range tableName.FindAllStringSubmatch(query, -1) {
		if m[2] == name {
			return m[1]
		}
	}
	return name
}
