//go:build linux

package screen

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"weir/internal/require"
)

// Written lines stay in their order above the moving rows.
func TestLinesStay(t *testing.T) {
	term := openTerminal(t, 80, 24)
	s := New(term.weir)
	if !s.Moves() || s.Columns() != 80 {
		t.Fatalf("moves %v, %d columns", s.Moves(), s.Columns())
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var want, moving []string
	for i := range 500 {
		switch rng.IntN(4) {
		case 0:
			want = append(want, fmt.Sprintf("line %d", i))
			_, _ = fmt.Fprintln(s, want[len(want)-1])
		case 1:
			want = append(want, fmt.Sprintf("part %d", i))
			_, _ = fmt.Fprintf(s, "part ")
			s.show(moving[:0])
			_, _ = fmt.Fprintf(s, "%d\n", i)
		default:
			moving = nil
			for k := range rng.IntN(4) {
				moving = append(moving, Look{Color: true}.Paint(Red, fmt.Sprintf("row %d of %d", k, i))+strings.Repeat("x", rng.IntN(60)))
			}
			s.show(moving)
		}
		if i%50 == 0 {
			term.seen()
		}
	}
	s.show(nil)
	if got := term.seen(); !slices.Equal(got, want) {
		t.Errorf("%d lines, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
}

// A line without its end is not overwritten by the moving rows.
func TestBegunLine(t *testing.T) {
	term := openTerminal(t, 40, 24)
	s := New(term.weir)
	s.show([]string{"moves"})
	_, _ = io.WriteString(s, "how? ")
	s.show([]string{"moves again", "and more"})
	if got, want := term.seen(), []string{"how?", "moves again", "and more"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Rows fit into the terminal, and a smaller terminal shows no more rows than it has lines.
func TestRowsFit(t *testing.T) {
	term := openTerminal(t, 20, 4)
	s := New(term.weir)
	s.show([]string{"c", "d", strings.Repeat("a", 50), Red + strings.Repeat("b", 50)})
	if got, want := term.seen(), []string{strings.Repeat("a", 17), strings.Repeat("b", 17)}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if !strings.HasSuffix(term.raw.String(), Normal) {
		t.Errorf("the color goes on: %q", term.raw.String())
	}
}

// A terminal that was made narrower has wrapped the rows. All wrapped rows are removed.
func TestNarrower(t *testing.T) {
	term := openTerminal(t, 80, 24)
	s := New(term.weir)
	_, _ = fmt.Fprintln(s, "stays")
	s.show([]string{strings.Repeat("a", 70), strings.Repeat("b", 30)})
	term.seen()
	term.resize(25, 24)
	term.lines, term.y, term.x = [][]rune{[]rune("stays"), nil, nil, nil, nil, nil}, 5, 5 // 3 + 2 lines now
	s.show([]string{"new"})
	if got, want := term.seen(), []string{"stays", "new"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Rows are drawn while they move, and are gone when it stops.
func TestAnimate(t *testing.T) {
	term := openTerminal(t, 80, 24)
	s := New(term.weir)
	drawn := make(chan int, 100)
	stop := s.Animate(func(columns int) []string {
		select {
		case drawn <- columns:
		default:
		}
		return []string{"moving"}
	})
	if got := <-drawn; got != 80 {
		t.Errorf("%d columns", got)
	}
	_, _ = fmt.Fprintln(s, "said meanwhile")
	<-drawn
	stop()
	if got, want := term.seen(), []string{"said meanwhile"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Rows are not drawn in a file, and the loss of the terminal does not end the program.
func TestNoTerminal(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/log")
	require.NoError(t, err)
	s := New(file)
	s.Animate(func(int) []string { t.Error("drawn"); return nil })()
	if s.Moves() || s.Columns() != 80 || New(s) != s {
		t.Error("a file moves")
	}
	term := openTerminal(t, 80, 24)
	s = New(term.weir)
	s.show([]string{"row"})
	_ = term.control.Close()
	s.show([]string{"another"})
	stop := s.Animate(func(int) []string { return []string{"more"} })
	_, _ = fmt.Fprintln(s, "and a line")
	stop()
}

// A terminal without escape sequences gets no escape sequences.
func TestDumb(t *testing.T) {
	term := openTerminal(t, 80, 24)
	t.Setenv("TERM", "dumb")
	if New(term.weir).Moves() {
		t.Error("it moves")
	}
	for value, want := range map[string]bool{"": true, "1": false} {
		t.Setenv("NO_COLOR", value)
		if Colored() != want {
			t.Errorf("NO_COLOR=%q", value)
		}
	}
}
