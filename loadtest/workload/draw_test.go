package workload

import (
	"math"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/unit"
	"weir/storage"
)

// chiSquare fails if counts do not follow the expected numbers. Its bound is
// the 99.9% quantile by the approximation of Wilson and Hilferty; seeds are
// fixed, so a test either always passes or never does.
func chiSquare(t *testing.T, what string, counts []int, expected []float64) {
	t.Helper()
	x := 0.0
	for i, e := range expected {
		d := float64(counts[i]) - e
		x += d * d / e
	}
	k := float64(len(expected) - 1)
	bound := k * math.Pow(1-2/(9*k)+3.09*math.Sqrt(2/(9*k)), 3)
	if x > bound {
		t.Errorf("%s: chi-square %.1f of %d cells is above %.1f", what, x, len(expected), bound)
	}
}

func TestPickFollowsItsDistribution(t *testing.T) {
	const n, draws = 40, 80_000
	zipf, sum := make([]float64, n), 0.0
	for i := range zipf {
		zipf[i] = math.Pow(float64(i+1), -1.2)
		sum += zipf[i]
	}
	even := make([]float64, n)
	for i := range zipf {
		zipf[i] *= draws / sum
		even[i] = draws / n
	}
	for _, tt := range []struct {
		w    Work
		want []float64
	}{
		{Work{Kind: "read", Pick: "random"}, even},
		{Work{Kind: "read"}, even},
		{Work{Kind: "read", Pick: "zipf", Skew: 1.2}, zipf},
	} {
		files := fileSet(n, 1)
		index := map[string]int{}
		for i, f := range files {
			index[f.Path] = i
		}
		s, r := mustNew(t, tt.w, files, 0), rng(11)
		counts := make([]int, n)
		var task Task
		for range draws {
			s.Next(r, &task)
			counts[index[task.Ops[0].Path]]++
		}
		chiSquare(t, "pick "+tt.w.Pick, counts, tt.want)
	}
}

func TestSequentialCoversTheSetEvenly(t *testing.T) {
	const n, clients, rounds = 7, 10, 3
	files := fileSet(n, 1)
	counts := map[string]int{}
	for c := range clients {
		s, r := mustNew(t, Work{Kind: "read", Pick: "sequential"}, files, c), rng(uint64(c))
		var task Task
		for i := range n * rounds {
			s.Next(r, &task)
			if want := files[(c+i)%n].Path; task.Ops[0].Path != want {
				t.Fatalf("client %d reads %s as file %d, want %s", c, task.Ops[0].Path, i, want)
			}
			counts[task.Ops[0].Path]++
		}
	}
	for p, k := range counts {
		if k != clients*rounds {
			t.Errorf("%s is read %d times, want %d", p, k, clients*rounds)
		}
	}
}

func TestMixFollowsItsWeights(t *testing.T) {
	const draws = 50_000
	w := Work{Kind: "mix", Mix: map[string]float64{"read": 5, "stat": 3, "login": 2, "write": 0}}
	s, r := mustNew(t, w, fileSet(3, 1), 0), rng(3)
	var counts [storage.Kinds]int
	var task Task
	for range draws {
		s.Next(r, &task)
		counts[task.Ops[0].Kind]++
	}
	got := []int{counts[storage.Read], counts[storage.Stat], counts[storage.Login]}
	chiSquare(t, "mix", got, []float64{draws * 0.5, draws * 0.3, draws * 0.2})
	if got[0]+got[1]+got[2] != draws {
		t.Errorf("kinds without weight were drawn: %v", counts)
	}
}

func TestVerifyIsAShare(t *testing.T) {
	for _, kind := range []string{"read", "write"} {
		t.Run(kind, func(t *testing.T) { verifyIsAShare(t, Work{Kind: Kind(kind), Size: Dist{Fixed: 1}, Sum: "crc32c"}) })
	}
}

func verifyIsAShare(t *testing.T, w Work) {
	const draws = 50_000
	for _, share := range []float64{0, 0.01, 0.5, 1} {
		w.Verify = unit.Fraction(share)
		s, r := mustNew(t, w, fileSet(3, 1), 0), rng(4)
		n := 0
		var task Task
		for range draws {
			s.Next(r, &task)
			if task.Verify {
				n++
			}
		}
		if share == 0 || share == 1 {
			if n != int(share)*draws {
				t.Errorf("share %v: %d of %d verified", share, n, draws)
			}
			continue
		}
		chiSquare(t, "verify", []int{n, draws - n}, []float64{share * draws, (1 - share) * draws})
	}
}

// cells sorts draws into n equally likely cells by their cumulative share.
func cells(n, draws int, share func() float64) ([]int, []float64) {
	counts, want := make([]int, n), make([]float64, n)
	for range draws {
		counts[min(int(share()*float64(n)), n-1)]++
	}
	for i := range want {
		want[i] = float64(draws) / float64(n)
	}
	return counts, want
}

func TestThinkFollowsItsSpan(t *testing.T) {
	r := rng(8)
	fixed := Span{Fixed: unit.Duration(time.Second)}
	if got := fixed.Draw(r); got != time.Second || fixed.Mean() != got {
		t.Errorf("fixed: %v", got)
	}
	if got := (Span{}).Draw(r); got != 0 {
		t.Errorf("nothing: %v", got)
	}
	exp := Span{Exponential: unit.Duration(2 * time.Second)}
	counts, want := cells(50, 50_000, func() float64 { return 1 - math.Exp(-exp.Draw(r).Seconds()/2) })
	chiSquare(t, "exponential", counts, want)
	uni := Span{Uniform: []unit.Duration{unit.Duration(time.Second), unit.Duration(3 * time.Second)}}
	counts, want = cells(50, 50_000, func() float64 { return (uni.Draw(r).Seconds() - 1) / 2 })
	chiSquare(t, "uniform", counts, want)
	if uni.Mean() != 2*time.Second || exp.Mean() != 2*time.Second {
		t.Errorf("means are %v and %v, want 2s", uni.Mean(), exp.Mean())
	}
	if got := (Span{Uniform: []unit.Duration{5, 5}}).Draw(r); got != 5 {
		t.Errorf("uniform [5, 5]: %d", got)
	}
	if got := (Span{Exponential: math.MaxInt64}).Draw(r); got < 0 {
		t.Errorf("exponential of the longest mean: %v", got)
	}
}

func TestSizesFollowTheirDist(t *testing.T) {
	const draws = 40_000
	r := rng(9)
	sample := func(d Dist) Sampler {
		s, err := d.Sampler()
		require.NoError(t, err)
		return s
	}
	if got := sample(Dist{Fixed: 77})(r); got != 77 {
		t.Errorf("fixed: %d", got)
	}
	uniform := sample(Dist{Uniform: []unit.Size{10, 14}})
	counts, want := make([]int, 5), []float64{8000, 8000, 8000, 8000, 8000}
	for range draws {
		counts[uniform(r)-10]++
	}
	chiSquare(t, "uniform", counts, want)
	weighted := sample(Dist{Weights: map[string]float64{"1KiB": 1, "0": 2, "3kB": 1, "9B": 0}})
	seen := map[int64]int{}
	for range draws {
		seen[weighted(r)]++
	}
	chiSquare(t, "weights", []int{seen[0], seen[1024], seen[3000]}, []float64{20_000, 10_000, 10_000})
	if len(seen) != 3 {
		t.Errorf("weights drew %v", seen)
	}
}
