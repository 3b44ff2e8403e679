package emulator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// Best returns the kind of process in which links can be made here, or an error with ErrImpossible.
// probe is a program with arguments that writes the result of Probe to its standard output, as
// JSON: this program, usually. It tests the possibilities without privileges in a network of its
// own; if probe is empty they are not considered. The test takes some milliseconds and leaves
// nothing behind.
func Best(ctx context.Context, probe []string) (Choice, error) {
	here := Probe()
	if here == "" || len(probe) == 0 {
		return choose(here, nil)
	}
	there, err := probeIsolated(ctx, probe)
	if err != nil {
		there = err.Error()
	}
	return choose(here, &there)
}

func probeIsolated(ctx context.Context, probe []string) (why string, err error) {
	cmd := exec.CommandContext(ctx, probe[0], probe[1:]...)
	var said bytes.Buffer
	cmd.Args[0], cmd.Stderr = "weir", &said
	isolate(cmd)
	out, err := cmd.Output()
	if err != nil {
		if text := strings.TrimSpace(said.String()); text != "" {
			err = fmt.Errorf("%w: %s", err, text)
		}
		return "", err
	}
	return why, json.Unmarshal(out, &why)
}

// Probe returns the reason for which this process cannot make links, "" if it can.
func Probe() string { return probeWith(tunPath) }

func probeWith(device string) string {
	s, err := newSpace()
	if err != nil {
		return reason(err, "the capability CAP_SYS_ADMIN, as root has")
	}
	defer s.close()
	// The service's end is made in this process's namespace.
	t, err := newTun(device)
	if err == nil {
		err = errors.Join(t.file.Close(), s.in(func() error {
			t, err := newTun(device)
			if err != nil {
				return err
			}
			return t.file.Close()
		}))
	}
	if err == nil {
		return ""
	}
	if errors.Is(err, unix.EPERM) { // nor can there be any other device
		return "network namespaces: " + reason(err, device+" and the capability CAP_NET_ADMIN")
	}
	return "packets cannot pass through user space: " + reason(err, device+" and the capability CAP_NET_ADMIN")
}

// reason describes an error and the privilege without which it occurs.
func reason(err error, help string) string { return err.Error() + " (this needs " + help + ")" }
