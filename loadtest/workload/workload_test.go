package workload

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/content"
	"weir/internal/require"
	"weir/internal/unit"
	"weir/storage"
)

func fileSet(n int, size int64) []File {
	files := make([]File, n)
	for i := range files {
		files[i] = File{Path: fmt.Sprintf("data/d%d/f%04d", i%3, i), Size: size, Seed: uint64(i), Made: true}
	}
	return files
}

func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

func mustNew(t testing.TB, w Work, files []File, client int) Workload {
	t.Helper()
	s, err := New(w, files, client, "weir/run1")
	require.NoError(t, err)
	return s
}

// everything returns a mix of all operations that a mix may have.
func everything() Work {
	w := Work{Kind: "mix", Mix: map[string]float64{}, Sum: "adler32", Verify: 0.3,
		Size: Dist{Uniform: []unit.Size{0, 5000}}, Think: Span{Exponential: unit.Duration(time.Second)},
		Chunk: 1 << 20, InFlight: 4, Timeout: unit.Duration(time.Minute),
		Part: &Part{Size: 100, Count: 3}}
	for i, k := range mixable("mix") {
		w.Mix[k] = float64(i + 1)
	}
	return w
}

// clone copies a task, so that it stays valid after the next task.
func clone(t *Task) Task {
	c := *t
	c.Ops = append([]storage.Op(nil), t.Ops...)
	for i := range c.Ops {
		c.Ops[i].Ranges = append([]storage.Range(nil), c.Ops[i].Ranges...)
	}
	if t.File != nil {
		f := *t.File
		c.File = &f
	}
	return c
}

func life(t *testing.T, w Work, client, n int) []Task {
	t.Helper()
	s, r := mustNew(t, w, fileSet(50, 10_000), client), rng(42)
	var task Task
	tasks := make([]Task, n)
	for i := range tasks {
		s.Next(r, &task)
		tasks[i] = clone(&task)
	}
	return tasks
}

func TestSameSeedSameLife(t *testing.T) {
	for _, pick := range []string{"random", "sequential", "zipf"} {
		w := everything()
		w.Pick = pick
		if pick == "zipf" {
			w.Skew = 1.3
		}
		a, b := life(t, w, 3, 2000), life(t, w, 3, 2000)
		if d := cmp.Diff(a, b); d != "" {
			t.Errorf("pick %s: two lives of one client differ:\n%s", pick, d)
		}
		if cmp.Equal(a, life(t, w, 4, 2000)) {
			t.Errorf("pick %s: clients 3 and 4 live the same life", pick)
		}
	}
}

func TestEveryOpIsComplete(t *testing.T) {
	w := everything()
	for i, task := range life(t, w, 0, 5000) {
		if len(task.Ops) != 1 {
			t.Fatalf("task %d has %d operations, want 1", i, len(task.Ops))
		}
		op := task.Ops[0]
		if op.Timeout != time.Minute {
			t.Fatalf("task %d: timeout %v, want 1m", i, op.Timeout)
		}
		hasSum := op.Sum == "adler32"
		switch op.Kind {
		case storage.Read:
			if op.Chunk != 1<<20 || op.Ahead != 4 || op.Size != 10_000 || task.File.Path != op.Path || len(op.Ranges) != 3 {
				t.Fatalf("task %d: incomplete read %+v", i, op)
			}
			if hasSum != task.Verify {
				t.Fatalf("task %d: verify is %v, sum is %q", i, task.Verify, op.Sum)
			}
		case storage.Checksum:
			if !hasSum {
				t.Fatalf("task %d: checksum without algorithm", i)
			}
		case storage.Write:
			want := File{Path: op.Path, Size: op.Size, Seed: op.Seed, Made: true}
			if hasSum || *task.File != want || op.Size > 5000 {
				t.Fatalf("task %d: write %+v of file %+v", i, op, *task.File)
			}
		}
	}
}

func TestWaysOfReadingAndWriting(t *testing.T) {
	w := everything()
	for _, ways := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
		w.Plain, w.KeepOpen = ways[0], ways[1]
		for i, task := range life(t, w, 0, 1000) {
			op := task.Ops[0]
			payload := op.Kind == storage.Read || op.Kind == storage.Write
			if op.Plain != (payload && w.Plain) || op.Keep != (op.Kind == storage.Read && w.KeepOpen) {
				t.Fatalf("plain %v, keep_open %v: task %d is %+v", w.Plain, w.KeepOpen, i, op)
			}
		}
	}
}

// The memory of a client that moves and never removes is bounded.
func TestMovesRememberABoundedNumber(t *testing.T) {
	w := Work{Kind: "mix", Mix: map[string]float64{"write": 9, "move": 1}, Size: Dist{Fixed: 1}}
	s := mustNew(t, w, nil, 0)
	var task Task
	for r := rng(1); task.Ops == nil || len(s.(*stream).made) < mostKept; {
		s.Next(r, &task)
	}
	for r := rng(2); task.Ops[0].Kind != storage.Move; {
		s.Next(r, &task)
	}
	if n := len(s.(*stream).made); n != mostKept {
		t.Errorf("%d files remembered, want at most %d", n, mostKept)
	}
}

func TestListGoesWhereFilesAre(t *testing.T) {
	w := Work{Kind: "metadata", Mix: map[string]float64{"list": 1}}
	var task Task
	mustNew(t, w, fileSet(5, 1), 0).Next(rng(1), &task)
	if got := task.Ops[0].Path; !strings.HasPrefix(got, "data/d") || strings.Count(got, "/") != 1 {
		t.Errorf("list of %q, want a folder of the files", got)
	}
	mustNew(t, w, []File{{Path: "top"}}, 0).Next(rng(1), &task)
	if got := task.Ops[0].Path; got != "" {
		t.Errorf("list of %q, want the target itself", got)
	}
	mustNew(t, w, nil, 7).Next(rng(1), &task)
	if got := task.Ops[0].Path; got != "" {
		t.Errorf("list of %q where nothing is made, want the target itself: nobody makes the client's folder", got)
	}
	w.Mix["mkdir"] = 1
	makes := mustNew(t, w, nil, 7)
	for r := rng(1); len(task.Ops) == 0 || task.Ops[0].Kind != storage.List || task.Ops[0].Path == ""; {
		makes.Next(r, &task)
	}
	if got := task.Ops[0].Path; got != "weir/run1/c0007" {
		t.Errorf("list of %q without files, want the client's own folder", got)
	}
}

func TestNoNameTwice(t *testing.T) {
	seen := map[string]bool{}
	contents := map[uint64]bool{}
	for _, client := range []int{0, 1, 11, 9999, 10_000, 100_001} {
		for _, task := range life(t, everything(), client, 3000) {
			op := task.Ops[0]
			if op.Kind != storage.Write && op.Kind != storage.Mkdir && op.Kind != storage.Move {
				continue
			}
			if seen[op.Path] {
				t.Fatalf("%s is made twice", op.Path)
			}
			if !strings.HasPrefix(op.Path, Home("weir/run1", client)+"/") {
				t.Fatalf("client %d writes %s, outside of its home", client, op.Path)
			}
			seen[op.Path] = true
			if op.Kind == storage.Write {
				if contents[op.Seed] {
					t.Fatalf("%s has the content of another file", op.Path)
				}
				contents[op.Seed] = true
			}
		}
	}
	if len(contents) < 1000 {
		t.Fatalf("only %d files written, the test is too weak", len(contents))
	}
}

func TestNames(t *testing.T) {
	tests := []struct {
		client int
		n      uint64
		want   string
	}{
		{0, 0, "a/c0000/000000.dat"},
		{7, 12, "a/c0007/000012.dat"},
		{12345, 1_000_000, "a/c12345/1000000.dat"},
	}
	for _, tt := range tests {
		n := names{home: Home("a", tt.client)}
		if got := n.file(tt.n); got != tt.want {
			t.Errorf("file %d of client %d is %s, want %s", tt.n, tt.client, got, tt.want)
		}
	}
	if got, want := (&names{home: "x"}).folder(3), "x/d0003"; got != want {
		t.Errorf("folder 3 is %s, want %s", got, want)
	}
}

// TestRemoveAndMoveOnlyOwn runs the tasks on a model of a service: each removed or moved item must
// exist, be made by the same client, be of the right kind, and be removed only once.
func TestRemoveAndMoveOnlyOwn(t *testing.T) {
	tests := []struct {
		w    Work
		made storage.Kind
	}{
		{everything(), storage.Write},
		{Work{Kind: "mix", Mix: map[string]float64{"remove": 20, "write": 1}, Size: Dist{Fixed: 1}}, storage.Write},
		{Work{Kind: "metadata", Mix: map[string]float64{"mkdir": 1, "remove": 1, "stat": 1, "list": 1}}, storage.Mkdir},
		{Work{Kind: "metadata", Mix: map[string]float64{"mkdir": 1, "remove": 1, "move": 3, "ping": 1}}, storage.Mkdir},
		{Work{Kind: "mix", Mix: map[string]float64{"write": 1, "move": 1}, Size: Dist{Fixed: 7}}, storage.Write},
	}
	for i, tt := range tests {
		s, r := mustNew(t, tt.w, fileSet(5, 1000), 1), rng(5)
		mine, removed, moved := map[string]bool{}, 0, 0
		sizes, seeds := map[string]int64{}, map[string]uint64{}
		var task Task
		for n := range 5000 {
			s.Next(r, &task)
			op := task.Ops[0]
			switch op.Kind {
			case tt.made:
				task.Failed = n%7 == 0 // the service refuses some
				mine[op.Path] = !task.Failed
				sizes[op.Path], seeds[op.Path] = op.Size, op.Seed
			case storage.Move:
				if !mine[op.Source] || mine[op.Path] {
					t.Fatalf("case %d: moves %s to %s, want its own to a new name", i, op.Source, op.Path)
				}
				if tt.made == storage.Write && (op.Size != sizes[op.Source] || op.Seed != seeds[op.Source]) {
					t.Fatalf("case %d: moves %s as %d bytes of content %d, it has %d of %d", i, op.Source, op.Size, op.Seed, sizes[op.Source],
						seeds[op.Source])
				}
				moved++
				task.Failed = n%3 == 0 // its name is unknown: it is not used again
				mine[op.Source], mine[op.Path] = false, !task.Failed
				sizes[op.Path], seeds[op.Path] = op.Size, op.Seed
			case storage.Remove:
				if !mine[op.Path] {
					t.Fatalf("case %d: removes %s, which is not its own or not there", i, op.Path)
				}
				mine[op.Path] = false
				removed++
				task.Failed = n%5 == 0 // a failed remove is not tried again
			}
		}
		if removed < 100 && tt.w.Mix["remove"] > 0 || moved < 100 && tt.w.Mix["move"] > 0 {
			t.Errorf("case %d: only %d removed, %d moved", i, removed, moved)
		}
	}
}

func TestNewNeedsFiles(t *testing.T) {
	for _, w := range []Work{
		{Kind: "read"},
		{Kind: "mix", Mix: map[string]float64{"write": 1, "stat": 1}, Size: Dist{Fixed: 1}},
		{Kind: "metadata", Mix: map[string]float64{"stat": 1}},
		{Kind: "metadata", Mix: map[string]float64{"locate": 1}},
	} {
		if _, err := New(w, nil, 0, ""); err == nil || !strings.Contains(err.Error(), "no files") {
			t.Errorf("New(%s) without files: %v, want an error about files", w.Kind, err)
		}
	}
	for _, w := range []Work{
		{Kind: "login"},
		{Kind: "write", Size: Dist{Fixed: 1}},
		{Kind: "metadata", Mix: map[string]float64{"mkdir": 1, "list": 1}},
		{Kind: "metadata", Mix: map[string]float64{"mkdir": 1, "move": 1, "ping": 1}},
	} {
		if _, err := New(w, nil, 0, ""); err != nil {
			t.Errorf("New(%s) without files: %v", w.Kind, err)
		}
	}
	if _, err := New(Work{Kind: "login"}, nil, -1, ""); err == nil {
		t.Error("New takes client -1")
	}
}

func TestWrites(t *testing.T) {
	for kind, want := range map[Kind]bool{ReadWork: false, LoginWork: false, WriteWork: true} {
		if got := Writes(Work{Kind: kind}); got != want {
			t.Errorf("Writes(%s) = %v", kind, got)
		}
	}
	if !Writes(Work{Kind: "metadata", Mix: map[string]float64{"stat": 1, "mkdir": 1}}) {
		t.Error("a mkdir is no write")
	}
	if Writes(Work{Kind: "mix", Mix: map[string]float64{"stat": 1, "write": 0}}) {
		t.Error("a write of weight 0 is one")
	}
}

func TestReadsAllocateNothing(t *testing.T) {
	works := map[string]Work{
		"whole":  {Kind: "read", Verify: 0.01, Sum: "adler32", Think: Span{Exponential: 1e9}},
		"parts":  {Kind: "read", Part: &Part{Size: 100, Count: 8}},
		"walk":   {Kind: "read", Pick: "sequential", Part: &Part{Size: 1000, Count: 3, Order: "sequential"}},
		"zipf":   {Kind: "read", Pick: "zipf", Skew: 1.2},
		"meta":   {Kind: "metadata", Mix: map[string]float64{"stat": 2, "list": 1}},
		"logins": {Kind: "login", Think: Span{Uniform: []unit.Duration{1, 5}}},
	}
	for name, w := range works {
		s, r := mustNew(t, w, fileSet(100, 10_000), 0), rng(1)
		var task Task
		s.Next(r, &task)
		if n := testing.AllocsPerRun(1000, func() { s.Next(r, &task) }); n != 0 {
			t.Errorf("%s: %v allocations a task, want 0", name, n)
		}
	}
}

func TestExpected(t *testing.T) {
	f := File{Path: "x", Size: 100_000, Seed: 9, Made: true}
	whole, err := content.Sum("adler32", 9, 0, 100_000)
	require.NoError(t, err)
	tests := []struct {
		name   string
		ranges []storage.Range
		bytes  func(all []byte) []byte
	}{
		{"whole", nil, func(all []byte) []byte { return all }},
		{"start", []storage.Range{{Offset: 0, Length: 10}}, func(all []byte) []byte { return all[:10] }},
		{"two", []storage.Range{{Offset: 60_000, Length: 20_000}, {Offset: 5, Length: 1}}, func(all []byte) []byte {
			return append(append([]byte(nil), all[60_000:80_000]...), all[5])
		}},
		{"past the end", []storage.Range{{Offset: 99_990, Length: 20}, {Offset: 200_000, Length: 5}},
			func(all []byte) []byte { return all[99_990:] }},
		{"nothing", []storage.Range{{Offset: 10}}, func([]byte) []byte { return nil }},
	}
	all := make([]byte, f.Size)
	content.Fill(all, f.Seed, 0)
	for _, tt := range tests {
		for _, alg := range content.Algorithms() {
			h, err := content.NewHash(alg)
			require.NoError(t, err)
			h.Write(tt.bytes(all))
			got, ok := Expected(f, &storage.Op{Kind: storage.Read, Ranges: tt.ranges}, alg)
			if want := content.Text(alg, h); !ok || got != want {
				t.Errorf("%s: Expected = %s, %v, want %s", tt.name, got, ok, want)
			}
		}
	}
	if got, ok := Expected(f, &storage.Op{Kind: storage.Checksum}, "adler32"); !ok || got != whole {
		t.Errorf("of a checksum: %s, %v, want %s", got, ok, whole)
	}
	unknown := f
	unknown.Made = false
	if _, ok := Expected(unknown, &storage.Op{}, "adler32"); ok {
		t.Error("knows the content of a file that it did not make")
	}
	if _, ok := Expected(f, &storage.Op{}, "rot13"); ok {
		t.Error("knows rot13")
	}
	if _, ok := Expected(f, &storage.Op{Kind: storage.Stat}, "adler32"); ok {
		t.Error("knows the checksum of a stat")
	}
}

func TestCheckNamesTheKey(t *testing.T) {
	ok := Work{Kind: "read"}
	with := func(change func(*Work)) Work { w := ok; change(&w); return w }
	tests := []struct {
		key string
		w   Work
	}{
		{"kind", Work{Kind: "reed"}},
		{"mix", Work{Kind: "mix"}},
		{"mix", with(func(w *Work) { w.Mix = map[string]float64{"read": 1} })},
		{"mix", Work{Kind: "mix", Mix: map[string]float64{"read": 0}}},
		{"mix", Work{Kind: "mix", Mix: map[string]float64{"read": -1, "stat": 3}}},
		{"mix.copy", Work{Kind: "mix", Mix: map[string]float64{"copy": 1, "read": 1}}},
		{"mix.read", Work{Kind: "metadata", Mix: map[string]float64{"read": 1, "stat": 1}}},
		{"mix.remove", Work{Kind: "mix", Mix: map[string]float64{"remove": 1, "read": 1}}},
		{"mix.remove", Work{Kind: "metadata", Mix: map[string]float64{"remove": 1, "stat": 1}}},
		{"mix.move", Work{Kind: "mix", Mix: map[string]float64{"move": 1, "read": 1}}},
		{"mix.move", Work{Kind: "metadata", Mix: map[string]float64{"move": 1, "stat": 1}}},
		{"plain", Work{Kind: "login", Plain: true}},
		{"keep_open", Work{Kind: "write", Size: Dist{Fixed: 1}, KeepOpen: true}},
		{"keep_open", with(func(w *Work) { w.KeepOpen, w.Session = true, "fresh" })},
		{"pick", with(func(w *Work) { w.Pick = "best" })},
		{"skew", with(func(w *Work) { w.Skew = 2 })},
		{"skew", with(func(w *Work) { w.Pick, w.Skew = "zipf", 1 })},
		{"part.size", with(func(w *Work) { w.Part = &Part{} })},
		{"part.count", with(func(w *Work) { w.Part = &Part{Size: 1, Count: MaxParts + 1} })},
		{"part.order", with(func(w *Work) { w.Part = &Part{Size: 1, Order: "up"} })},
		{"part", Work{Kind: "login", Part: &Part{Size: 1}}},
		{"think", with(func(w *Work) { w.Think = Span{Fixed: 1, Exponential: 1} })},
		{"think", with(func(w *Work) { w.Think = Span{Fixed: -1} })},
		{"think", with(func(w *Work) { w.Think = Span{Uniform: []unit.Duration{1}} })},
		{"think", with(func(w *Work) { w.Think = Span{Uniform: []unit.Duration{2, 1}} })},
		{"size", Work{Kind: "write"}},
		{"size", Work{Kind: "write", Size: Dist{Fixed: 1, Uniform: []unit.Size{1, 2}}}},
		{"size", Work{Kind: "write", Size: Dist{Fixed: -1}}},
		{"size", Work{Kind: "write", Size: Dist{Uniform: []unit.Size{1, 2, 3}}}},
		{"size", Work{Kind: "write", Size: Dist{Uniform: []unit.Size{3, 2}}}},
		{"size", Work{Kind: "write", Size: Dist{Weights: map[string]float64{"1 apple": 1}}}},
		{"size", Work{Kind: "write", Size: Dist{Weights: map[string]float64{"1MB": 0}}}},
		{"verify", with(func(w *Work) { w.Verify, w.Sum = 1.5, "md5" })},
		{"checksum", with(func(w *Work) { w.Verify = 0.1 })},
		{"checksum", Work{Kind: "write", Size: Dist{Fixed: 1}, Verify: 0.1}},
		{"checksum", with(func(w *Work) { w.Sum = "rot13" })},
		{"chunk", with(func(w *Work) { w.Chunk = -1 })},
		{"in_flight", with(func(w *Work) { w.InFlight = -1 })},
		{"job", Work{Kind: "job"}},
		{"job", with(func(w *Work) { w.Job = &Job{} })},
		{"job", Work{Kind: "command-job", Job: &Job{}}},
		{"part", Work{Kind: "command-job", Part: &Part{Size: 1}}},
		{"chunk", Work{Kind: "command-job", Chunk: 1}},
		{"keep_open", Work{Kind: "command-job", KeepOpen: true}},
		{"timeout", with(func(w *Work) { w.Timeout = -1 })},
		{"retries", with(func(w *Work) { w.Retries = -1 })},
	}
	for _, tt := range tests {
		err := Check(tt.w)
		var key *KeyError
		if !errors.As(err, &key) || key.Key != tt.key {
			t.Errorf("Check(%+v) = %v, want an error of %s", tt.w, err, tt.key)
		}
	}
	for _, w := range []Work{ok, everything(), {Kind: "read", Plain: true, KeepOpen: true, Session: "kept"},
		{Kind: "write", Size: Dist{Fixed: 1}, Plain: true}, {Kind: "login"}, {Kind: "read", Pick: "zipf", Skew: 1.1}} {
		if err := Check(w); err != nil {
			t.Errorf("Check(%+v) = %v, want nil", w, err)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for name, w := range map[string]Work{
		"read":  {Kind: "read", Verify: 0.01, Sum: "adler32", Think: Span{Exponential: 1e9}},
		"zipf":  {Kind: "read", Pick: "zipf", Skew: 1.2},
		"write": {Kind: "write", Size: Dist{Fixed: 1}},
	} {
		b.Run(name, func(b *testing.B) {
			s, r := mustNew(b, w, fileSet(1000, 10_000), 0), rng(1)
			var task Task
			b.ReportAllocs()
			for b.Loop() {
				s.Next(r, &task)
			}
		})
	}
}

// The workload of a client costs little: thousands of clients begin at once.
func TestNewAllocatesLittle(t *testing.T) {
	files := fileSet(3, 1)
	for _, w := range []Work{{Kind: "read", Pick: "random"}, {Kind: "stat", Pick: "sequential"}} {
		if n := testing.AllocsPerRun(100, func() { mustNew(t, w, files, 1) }); n > 12 {
			t.Errorf("%s: %v allocations", w.Kind, n)
		}
	}
}
