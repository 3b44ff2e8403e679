package emulator

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// What this test program is when a test starts it again.
const (
	asMover = "WEIR_TEST_MOVER" // what carries packets
	asProbe = "WEIR_TEST_PROBE" // what tries what is possible
)

func TestMain(m *testing.M) {
	for _, as := range []struct {
		variable string
		f        func() error
	}{
		{asMover, func() error { return Move(context.Background(), os.Stdin, os.Stdout) }},
		{asProbe, func() error { return json.NewEncoder(os.Stdout).Encode(Probe()) }},
		{asHost, hostLinks},
	} {
		if os.Getenv(as.variable) == "" {
			continue
		}
		if err := as.f(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
