package scenario

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/unit"
)

// Scenarios, --set and plans of earlier versions name the phases of a step otherwise.
func TestOlderNamesOfPhasesAreRead(t *testing.T) {
	s := func(d unit.Duration) int { return int(time.Duration(d) / time.Second) }
	read := func(text string, sets ...string) *Scenario {
		t.Helper()
		sc, err := Parse("s.yaml", []byte("target: http://a/\n"+text), nil, sets)
		require.NoError(t, err)
		return sc
	}
	for text, sets := range map[string][]string{
		"load: {ramp: 1s, settle: 2s, hold: 3s, cool: 4s, drain: 5s}\n":         nil,
		"load: {ramp: 1s, warmup: 2s, duration: 3s, cooldown: 4s, drain: 5s}\n": nil,
		"load: {ramp: 1s, settle: 9s, hold: 9s, cool: 4s, graceful_stop: 5s}\n": {"load.warmup=2s", "load.hold=3s"},
		"load: {ramp: 1s}\n": {"load={ramp: 1s, settle: 2s, hold: 3s, cool: 4s, drain: 5s}"},
	} {
		if l := read(text, sets...).Load; s(l.Warmup) != 2 || s(l.Duration) != 3 || s(l.Cooldown) != 4 || s(l.GracefulStop) != 5 {
			t.Errorf("%s %v: %+v", text, sets, l)
		}
	}
	for _, sc := range []*Scenario{read("matrix: {load.hold: [1s, 2s]}\n"), read("", "matrix.load.hold=[1s, 2s]"),
		read("matrix: {load: [{hold: 1s}, {hold: 2s}]}\n")} {
		if sc.Matrix.Variants() != 2 || s(sc.Load.Duration) != 1 {
			t.Errorf("%+v: %+v", sc.Matrix, sc.Load)
		}
	}
	_, err := Parse("s.yaml", []byte("target: http://a/\nload: {hold: 3s, duration: 4s}\n"), nil, nil)
	if err == nil || !strings.Contains(err.Error(), "s.yaml:2:8: load.hold is the older name of load.duration, "+
		"which is given as well: leave it out") {
		t.Error(err)
	}
}

func TestPlansOfVersion1AreRead(t *testing.T) {
	plan, err := parsePlan([]byte(`{"version":1,"name":"a","target":"http://a/","driver":"webdav","model":"closed","seed":18446744073709551615,
		"workload":{"kind":"read","session":"kept","pick":"random","timeout":"1m"},"drain":"30s","stop":{},"files":{"listing":true},
		"steps":[{"step":1,"clients":4,"ramp":"1s","settle":"2s","hold":"3s","cool":"4s"}]}`))
	require.NoError(t, err)
	want := Step{Number: 1, Clients: 4, Ramp: seconds(1), Warmup: seconds(2), Duration: seconds(3), Cooldown: seconds(4)}
	if !reflect.DeepEqual(plan.Steps, []Step{want}) || plan.GracefulStop != seconds(30) || plan.Seed != 18446744073709551615 {
		t.Errorf("%+v", plan)
	}
	data, err := UpgradePlan([]byte(`{"version":1,"find":{"hold":"8s","longest_hold":"48s","cool":"2s","longest_cool":"30s"},"part":{"whole":{"version":1,"drain":"1s"}}}`))
	const upgraded = `{"find":{"cooldown":"2s","duration":"8s","longest_cooldown":"30s","longest_duration":"48s"},"part":{"whole":{"graceful_stop":"1s","version":2}},"version":2}`
	if err != nil || string(data) != upgraded {
		t.Errorf("%s, %v", data, err)
	}
	if _, err := parsePlan([]byte(`{"version":1,"drain":"1s","graceful_stop":"1s"}`)); err == nil ||
		!strings.Contains(err.Error(), "drain is the older name of graceful_stop") {
		t.Error(err)
	}
}
