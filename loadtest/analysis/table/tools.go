package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"weir/loadtest/analysis/fact"
)

// A row is the result of another program at one load, in base units. NaN is unknown.
type row map[Kind]float64

// A result is the content of a file that another program wrote without a table.
type result struct {
	rows   []row
	fields []Column // the fields that were read
	notes  []fact.Fact
	open   bool // the load is in arrivals/s
}

// add states that a field of the program's output is read as a kind of column.
func (r *result) add(k Kind, field, unit string) {
	c := Column{Name: field, Number: len(r.fields) + 1, Quantity: k.String()}
	if c.accept(k, unit); k == Clients && r.open {
		c.Fact = fact.New("column.used", "quantity", "load, "+unit)
	}
	r.fields = append(r.fields, c)
}

// readTool reads the output of a known program. ok is false if the text is not such an output.
func (t *Table) readTool(raw []byte) (ok bool, err error) {
	var r *result
	switch text := bytes.TrimSpace(bytes.TrimPrefix(raw, []byte("\ufeff"))); {
	case bytes.Contains(text[:min(len(text), 1<<12)], []byte(" threads and ")) && bytes.Contains(text, []byte("requests in ")):
		r, err = readWrk(string(text))
	case bytes.Contains(text, []byte("\n{\n  \"fio version\"")): // behind notes
		r, err = readJSON(text[bytes.Index(text, []byte("\n{\n  \"fio version\"")):])
	case bytes.HasPrefix(text, []byte("{\"")), bytes.HasPrefix(text, []byte("{\n")), bytes.HasPrefix(text, []byte("{\r\n")),
		bytes.HasPrefix(text, []byte("{ ")), bytes.HasPrefix(text, []byte("{}")):
		r, err = readJSON(text)
	default:
		return false, nil
	}
	if err == nil && len(r.rows) == 0 {
		err = errors.New("it contains no measurements")
	}
	if err != nil {
		return true, t.whole("%v", err)
	}
	t.Columns, t.Notes, t.Open = r.fields, r.notes, r.open
	for i, row := range r.rows {
		t.Lines = append(t.Lines, i+1)
		for k, x := range row {
			if t.Found[k] == nil {
				t.Found[k] = unknowns(len(r.rows))
				t.Names[k] = k.String()
			}
			t.Found[k][i] = Value{x, true}
		}
	}
	return true, nil
}

func unknowns(n int) []Value { return make([]Value, n) }

// readJSON reads the summary of fio, k6 or vegeta.
func readJSON(raw []byte) (*result, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	var document struct {
		Fio       string                     `json:"fio version"`
		Jobs      []fioJob                   `json:"jobs"`
		Options   map[string]string          `json:"global options"`
		Metrics   map[string]json.RawMessage `json:"metrics"`
		K6        *k6Summary                 `json:"results"`
		Config    struct{ Duration float64 } `json:"config"`
		Latencies *vegetaLatencies           `json:"latencies"`
	}
	if err := decoder.Decode(&document); err != nil {
		return nil, fmt.Errorf("this is no table, and not the JSON of fio, k6 or vegeta: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("several JSON documents: give one file for each run (fio without --status-interval)")
	}
	switch {
	case document.Fio != "" || document.Jobs != nil:
		return readFio(document.Jobs, document.Options)
	case document.Metrics != nil:
		return readK6(plainMetrics(document.Metrics), 0)
	case document.K6 != nil && document.K6.Metrics != nil:
		return readK6(document.K6.metrics(), document.Config.Duration)
	case document.Latencies != nil:
		return readVegeta(raw)
	}
	return nil, errors.New("JSON of an unknown program: weir analyze reads fio --output-format=json, k6 --summary-export and " +
		"handleSummary, vegeta report -type=json")
}

// Join returns a table with the rows of several tables, which need the same kinds of columns.
func Join(all ...*Table) (*Table, error) {
	if len(all) == 1 {
		return all[0], nil
	}
	first := all[0]
	out := &Table{Names: first.Names, Found: map[Kind][]Value{}, Columns: first.Columns, Open: first.Open}
	var names []string
	for _, t := range all {
		names = append(names, t.Name)
		if t.Open != first.Open {
			return nil, fmt.Errorf("%s and %s have loads of different kinds, clients and arrivals/s: analyze them apart", first.Name, t.Name)
		}
		for k := range kinds {
			switch {
			case t.Has(k) != first.Has(k) && slices.Contains([]Kind{Throughput, Rate, Latency}, k):
				has, lacks := t, first
				if first.Has(k) {
					has, lacks = first, t
				}
				return nil, fmt.Errorf("%s has a %s and %s has none: analyze them apart", has.Name, k, lacks.Name)
			case t.Has(k) && (k == Time || k == Step):
				return nil, fmt.Errorf("%s has a column of %s: tables with times or steps are analyzed one by one", t.Name, k)
			}
		}
		for i := range t.Len() {
			out.Lines = append(out.Lines, t.Lines[i])
			for k := range kinds {
				if slices.ContainsFunc(all, func(t *Table) bool { return t.Has(k) }) {
					out.Found[k] = append(out.Found[k], t.Value(k, i))
				}
			}
		}
		for _, n := range t.Notes {
			if !slices.ContainsFunc(out.Notes, func(f fact.Fact) bool { return f.Text == n.Text }) {
				out.Notes = append(out.Notes, n)
			}
		}
	}
	out.Name = strings.Join(names, ", ")
	return out, nil
}
