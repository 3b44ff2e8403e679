package workload

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/internal/content"
	"weir/storage"
)

// A KeyError says which key of a workload is impossible and what would be
// right. Key is the path from the key workload, such as "think.uniform".
type KeyError struct {
	Key  string
	Text string
}

// Error returns "workload.key: text".
func (e *KeyError) Error() string { return "workload." + e.Key + ": " + e.Text }

// Check returns all that is impossible in w, as *KeyErrors joined by
// errors.Join, or nil. A key that is not set has its default: pick random,
// part.order random, part.count 1.
func Check(w Work) error {
	var errs []error
	say := func(key, format string, args ...any) {
		errs = append(errs, &KeyError{Key: key, Text: fmt.Sprintf(format, args...)})
	}
	checkKind(w, say)
	checkMix(w, say)
	checkPick(w, say)
	checkAmounts(w, say)
	checkWays(w, say)
	checkJob(w, say)
	return errors.Join(errs...)
}

type sayer func(key, format string, args ...any)

// mixable returns what the key mix may weigh.
func mixable(kind Kind) []string {
	if kind == MetadataWork {
		return []string{"stat", "list", "mkdir", "remove", "move", "locate", "ping"}
	}
	return []string{"read", "write", "stat", "list", "mkdir", "remove", "checksum", "login", "move", "locate", "ping"}
}

func checkKind(w Work, say sayer) {
	if kinds := Kinds(); !slices.Contains(kinds, string(w.Kind)) {
		say("kind", "unknown kind %q: use one of %s", w.Kind, strings.Join(kinds, ", "))
	}
	weighed := w.Kind == MixWork || w.Kind == MetadataWork
	switch {
	case weighed && len(w.Mix) == 0:
		say("mix", "kind %s needs weights, such as {%s: 9, %s: 1}", w.Kind, mixable(w.Kind)[0], mixable(w.Kind)[1])
	case !weighed && len(w.Mix) > 0:
		say("mix", "kind %s has no weights: use kind mix, or leave mix out", w.Kind)
	}
}

func checkMix(w Work, say sayer) {
	if w.Kind != MixWork && w.Kind != MetadataWork || len(w.Mix) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(w.Mix)) {
		if !slices.Contains(mixable(w.Kind), name) {
			say("mix."+name, "kind %s cannot weigh %q: use %s", w.Kind, name, strings.Join(mixable(w.Kind), ", "))
		}
	}
	if err := weights(w.Mix); err != nil {
		say("mix", "%v", err)
	}
	for _, of := range [...]struct{ kind, done string }{{"remove", "removed"}, {"move", "moved"}} {
		switch {
		case w.Mix[of.kind] <= 0:
		case w.Kind == MixWork && w.Mix["write"] <= 0:
			say("mix."+of.kind, "only files that this run wrote are %s: give write a weight, too", of.done)
		case w.Kind == MetadataWork && w.Mix["mkdir"] <= 0:
			say("mix."+of.kind, "only folders that this run made are %s: give mkdir a weight, too", of.done)
		}
	}
}

func checkPick(w Work, say sayer) {
	switch w.Pick {
	case "", "random", "sequential":
		if w.Skew != 0 {
			say("skew", "is only for pick: zipf")
		}
	case "zipf":
		if !(w.Skew > 1) || w.Skew > 100 {
			say("skew", "%v: zipf needs an exponent above 1 and at most 100, such as 1.2", w.Skew)
		}
	default:
		say("pick", "unknown pick %q: use random, sequential or zipf", w.Pick)
	}
	p := w.Part
	if p == nil {
		return
	}
	if p.Size <= 0 {
		say("part.size", "%d: a part has at least one byte", p.Size)
	}
	if p.Count < 0 || p.Count > MaxParts {
		say("part.count", "%d: use 1 to %d", p.Count, MaxParts)
	}
	if !slices.Contains([]string{"", "random", "sequential"}, p.Order) {
		say("part.order", "unknown order %q: use random or sequential", p.Order)
	}
	if !choose(w).has(storage.Read) && w.Kind != CommandJobWork {
		say("part", "kind %s reads no files", w.Kind)
	}
}

// checkWays checks how files are read and written.
func checkWays(w Work, say sayer) {
	c := choose(w)
	if w.Plain && !c.has(storage.Read) && !c.has(storage.Write) {
		say("plain", "kind %s moves no payload: leave it out", w.Kind)
	}
	if w.Sync && !c.has(storage.Write) {
		say("sync", "kind %s writes no files: leave it out", w.Kind)
	}
	if w.KeepOpen && !c.has(storage.Read) && w.Kind != CommandJobWork {
		say("keep_open", "kind %s reads no files: leave it out", w.Kind)
	}
	if w.KeepOpen && w.Session == FreshSession {
		say("keep_open", "files stay open as long as a session: use session: kept, or leave it out")
	}
}

// MaxParts is how many ranges one read may ask for.
const MaxParts = 4096

func checkAmounts(w Work, say sayer) {
	c := choose(w)
	if err := w.Think.check(); err != nil {
		say("think", "%v", err)
	}
	if _, err := w.Size.Sampler(); err != nil {
		say("size", "%v", err)
	}
	unset := w.Size.Fixed == 0 && w.Size.Uniform == nil && w.Size.Weights == nil
	if c.has(storage.Write) && unset {
		say("size", "how large are the files that clients write? Such as 1MiB")
	}
	if !(w.Verify >= 0 && w.Verify <= 1) {
		say("verify", "%v: use a share of 0%% to 100%%", float64(w.Verify))
	}
	sums := content.Algorithms()
	needed := w.Verify > 0 && (c.has(storage.Read) || c.has(storage.Write)) || c.has(storage.Checksum)
	if !slices.Contains(sums, w.Sum) && (needed || w.Sum != "") {
		say("checksum", "unknown algorithm %q: use one of %s", w.Sum, strings.Join(sums, ", "))
	}
	if w.Chunk < 0 || w.Chunk > 1<<30 {
		say("chunk", "%d bytes: use up to 1GiB, or 0 to let the driver choose", w.Chunk)
	}
	if w.InFlight < 0 || w.InFlight > 1<<16 {
		say("in_flight", "%d: use up to 65536, or 0 to let the driver choose", w.InFlight)
	}
	if w.Timeout < 0 {
		say("timeout", "cannot be negative: use 0 for none")
	}
	if w.Retries < 0 {
		say("retries", "cannot be negative: use 0 for none")
	}
}
