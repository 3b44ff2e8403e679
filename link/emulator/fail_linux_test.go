package emulator

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/link"
)

// An impossible link is refused with a reason, and no part of it remains.
func TestUpFails(t *testing.T) {
	needSpaces(t)
	before := interfaces(t)
	good := []link.Named{{Spec: link.Spec{Rate: 1e6}}}
	works := moverOptions(t)
	for name, c := range map[string]struct {
		links []link.Named
		o     Options
		want  string
	}{
		"no link":              {nil, works, "no links are given"},
		"an impossible link":   {[]link.Named{{Spec: link.Spec{Loss: 2}}}, works, "link.loss: 200%"},
		"no mover":             {good, Options{}, "no program was named that carries packets"},
		"a missing mover":      {good, Options{Mover: []string{"/nonexistent/weir"}}, "start the process that carries packets"},
		"a mover that ends":    {good, Options{Mover: []string{"true"}}, "has ended"},
		"a mover that babbles": {good, Options{Mover: []string{"echo", "<html>"}}, "has ended"},
		"no such congestion":   {[]link.Named{{Spec: link.Spec{Congestion: "nonesuch"}}}, works, "congestion control nonesuch"},
		"no device file":       {good, Options{Mover: works.Mover, device: "/nonexistent/tun"}, "open /nonexistent/tun"},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := Up(t.Context(), c.links, c.o)
			if err == nil {
				n.Close()
				t.Fatal("it is said to be up")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	eventually(t, func() error {
		if now := interfaces(t); !slices.Equal(now, before) {
			return fmt.Errorf("devices %v, before %v", now, before)
		}
		return nil
	})
}

// Addresses belong to a block that is unused on this machine.
func TestBlocks(t *testing.T) {
	needSpaces(t)
	spec := link.Spec{Rate: 10e6}
	a, _ := up(t, spec, spec)
	b, _ := up(t, spec)
	used, err := usedNetworks()
	require.NoError(t, err)
	for range 2000 {
		n, err := newBlock()
		require.NoError(t, err)
		if !n.free(used) || !strings.HasPrefix(n.service.String(), "198.18.") && !strings.HasPrefix(n.service.String(), "198.19.") {
			t.Fatalf("%+v", n)
		}
		sites := []string{n.service.String(), a.Service, b.Service}
		for i := range 200 {
			s := n.site(i).String()
			if slices.Contains(sites, s) || !n.base.Contains(n.site(i)) || strings.HasSuffix(s, ".0") || strings.HasSuffix(s, ".255") {
				t.Fatalf("site %d of %v is %s", i, n, s)
			}
			sites = append(sites, s)
		}
	}
}
