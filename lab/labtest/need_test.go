package labtest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"weir/internal/tier"
)

// The helper is tested by the results that `go test` would report: skipped or failed.
func TestNeed(t *testing.T) {
	if program := os.Getenv("WEIR_LAB_NEED"); program == "links" {
		tier.Without(t, program, "no links here")
	} else if program != "" {
		Need(t, program)
		return
	}
	for _, c := range []struct {
		program, require, want string
		short                  bool
	}{
		{program: "sh", require: "all", want: "--- PASS"},
		{program: "no-such-program", require: "", want: "--- SKIP"},
		{program: "no-such-program", require: "all", want: "--- FAIL"},
		{program: "no-such-program", require: "xrdcp, no-such-program", want: "--- FAIL"},
		{program: "no-such-program", require: "xrdcp", want: "--- SKIP"},
		{program: "links", require: "xrdcp", want: "--- SKIP"},
		{program: "links", require: "xrdcp links", want: "--- FAIL"},
		{program: "links", require: "all", want: "--- FAIL"},
		{program: "sh", want: "--- SKIP", short: true},
		{program: "sh", require: "all", want: "--- PASS", short: true},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNeed$", "-test.v", fmt.Sprintf("-test.short=%t", c.short))
		cmd.Env = append(os.Environ(), "WEIR_LAB_NEED="+c.program, "WEIR_REQUIRE="+c.require)
		out, _ := cmd.CombinedOutput()
		if !strings.Contains(string(out), c.want) {
			t.Errorf("need %s with WEIR_REQUIRE=%q: want %s in\n%s", c.program, c.require, c.want, out)
		}
	}
}
