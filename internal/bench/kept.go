package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
)

// A kept is what earlier runs of this program have measured, case by case, so
// that one that was broken off goes on where it was.
type kept struct {
	path  string // "" keeps nothing
	cases map[string]keptCase
}

// A keptCase is a case that was measured to its end.
type keptCase struct {
	Sides  []string             `json:"sides"`
	Rounds []map[string]figures `json:"rounds"`
}

func readKept(path string) (*kept, error) {
	k := &kept{path: path, cases: map[string]keptCase{}}
	if path == "" {
		return k, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return nil, err
	}
	return k, json.Unmarshal(b, &k.cases)
}

// find returns what was measured of a case in at least so many rounds.
func (k *kept) find(c benchmark, rounds int) (result, bool) {
	was, ok := k.cases[c.name]
	return result{benchmark: c, sides: was.Sides, rounds: was.Rounds}, ok && len(was.Rounds) >= rounds
}

func (k *kept) add(r result) error {
	k.cases[r.name] = keptCase{r.sides, r.rounds}
	if k.path == "" {
		return nil
	}
	b, err := json.Marshal(k.cases)
	if err != nil {
		return err
	}
	return os.WriteFile(k.path, b, 0o644)
}
