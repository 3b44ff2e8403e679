package emulator

import (
	"errors"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	fine, denied, noTun := "", "network namespaces: operation not permitted", "packets cannot pass: open /dev/net/tun: permission denied"
	for name, c := range map[string]struct {
		here     string
		isolated *string
		own      bool
		want     string
	}{
		"here":           {fine, nil, false, "in network namespaces, with a queue in user space"},
		"isolated":       {denied, &fine, true, "in a network of their own, since this process cannot make them"},
		"not tried":      {denied, nil, false, "links cannot be emulated here: network namespaces: operation not permitted: run as root"},
		"nowhere":        {denied, &noTun, false, "operation not permitted; nor in a network of this user's own: packets cannot pass"},
		"no device file": {noTun, &noTun, false, "allow users to make namespaces and open /dev/net/tun (docs/links.md)"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := choose(c.here, c.isolated)
			text := got.String()
			if err != nil {
				text = err.Error()
			}
			if got.Isolated != c.own || !strings.Contains(text, c.want) {
				t.Errorf("%+v: %s\nwithout %s", got, text, c.want)
			}
			if possible := c.here == "" || c.own; possible != (err == nil) || err != nil && !errors.Is(err, ErrImpossible) {
				t.Error(err)
			}
		})
	}
}
