package calibration

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/measure"
	"weir/loadtest/run/calibration/relay"
	"weir/monitor"
)

// made returns a step as if it had been read from a run directory.
func made(number, clients int, rate, cpu, serverCPU float64) Step {
	const seconds, size = 2, 1 << 20
	s := Step{Number: number, Clients: clients, ClientCPU: new(float64), ServerCPU: new(float64)}
	n := int64(rate * seconds)
	s.Held = measure.Window{Seconds: seconds, Sum: measure.Sum{Done: n, Moved: n * size}}
	for range n {
		s.Held.Latency.Record(time.Duration(float64(clients) / rate * float64(time.Second)))
	}
	s.All = s.Held
	s.Done, s.Moved = n, n*size
	*s.ClientCPU, *s.ServerCPU = cpu*float64(n), serverCPU*float64(n)
	return s
}

func counted(s Step, ops map[string]int64) Step {
	all := map[string]int64{}
	for name, n := range ops {
		all[name] = n * s.Done
	}
	s.Services = []*monitor.Service{{Ops: all, Logins: s.Done, Connected: s.Done, Sent: s.Moved, Received: 200 * s.Done}}
	return s
}

// example returns three rounds of two numbers of clients; weir is 10 times as fast and costs the
// server as much at the program's pace.
func example() *Result {
	r := &Result{Kind: "read", Program: "xrdcp", given: Given{Program: "xrdcp"}}
	ops := map[string]int64{"open": 1, "read": 1, "other": 2}
	for i, noise := range []float64{1, 1.1, 0.9, 1, 0.95, 1.05} {
		clients := []int{1, 8}[i%2]
		r.sides[0] = append(r.sides[0], counted(made(i+1, clients, 1000*noise, 1e-4, 4e-4), ops))
		r.sides[1] = append(r.sides[1], counted(made(i+1, clients, 100, 6e-3, 6e-4), ops))
		r.sides[2] = append(r.sides[2], counted(made(i+1, clients, 100, 6e-4, 6e-4*noise), ops))
	}
	seen := relay.Seen{Connections: 3, Up: 600, Down: 3 << 20, Requests: map[string]int64{"handshake": 3, "protocol": 3, "login": 3, "open" +
		relay.Async: 3, "page read": 3, "close": 3}}
	r.given.Look = [2]Look{{Operations: 3, Seen: seen}, {Operations: 3, Seen: seen}}
	return r
}

func finish(r *Result) *Result {
	r.compare()
	r.Relay, r.Servers = seen(r.given.Look), r.counted()
	r.conclude()
	return r
}

func TestCompare(t *testing.T) {
	r := finish(example())
	if len(r.Points) != 2 || r.Points[0].Clients != 1 || r.Points[1].Clients != 8 || r.Rounds != 3 || !r.Valid {
		t.Fatalf("%+v", r)
	}
	for _, p := range r.Points {
		for _, f := range p.Figures {
			for _, x := range []*Ratio{f.Ratio, f.PacedRatio} {
				if x != nil && !(x.Low > 0 && x.Low <= x.Value && x.Value <= x.High) {
					t.Errorf("%d clients, %s: %+v", p.Clients, f.Name, x)
				}
			}
			if f.Ratio != nil && *f.Weir / *f.Real != f.Ratio.Value {
				t.Errorf("%d clients, %s: %v / %v is not %v", p.Clients, f.Name, *f.Weir, *f.Real, f.Ratio.Value)
			}
		}
	}
	one := r.Points[0]
	if f := one.Figure(Rate); f.Ratio.Value != 9.5 || f.Ratio.Low != 9 || f.Ratio.High != 10 {
		t.Errorf("files/s: %+v", f.Ratio)
	}
	if f := one.Figure(ServerByFile); !near(f.Ratio.Value, 4./6) || !near(f.PacedRatio.Value, 0.95) {
		t.Errorf("server CPU: %+v %+v", f.Ratio, f.PacedRatio)
	}
	if f := one.Figure(ClientByGB); !near(*f.Weir, 1e-4/(1<<20)*1e9) {
		t.Errorf("client CPU a GB: %v", *f.Weir)
	}
}

// TestTwoRounds checks that the figures of a row are the means of two rounds, and their ratio that of
// the row, also where the faster round of weir is the slower round of the program.
func TestTwoRounds(t *testing.T) {
	r := &Result{Kind: "read", Program: "curl", given: Given{Program: "curl"}}
	r.sides[0] = []Step{made(1, 4, 1000, 1e-4, 4e-4), made(2, 4, 2000, 3e-4, 4e-4)}
	r.sides[1] = []Step{made(1, 4, 500, 1e-3, 8e-4), made(2, 4, 250, 2e-3, 8e-4)}
	r.compare()
	for name, want := range map[string][5]float64{
		Throughput:   {1500 << 20, 375 << 20, 4, 2, 8},
		Rate:         {1500, 375, 4, 2, 8},
		ClientByFile: {2e-4, 1.5e-3, 2e-4 / 1.5e-3, 0.1, 0.15},
		ServerByFile: {4e-4, 8e-4, 0.5, 0.5, 0.5},
	} {
		f := r.Points[0].Figure(name)
		for i, got := range []float64{*f.Weir, *f.Real, f.Ratio.Value, f.Ratio.Low, f.Ratio.High} {
			if !near(got, want[i]) {
				t.Errorf("%s: number %d is %v, want %v", name, i, got, want[i])
			}
		}
	}
}

// TestProgressIsTheRateOfTheTable checks that the rate of a step under way is the rate of the table:
// that of the hold, or of the whole step if too few files ended in the hold.
func TestProgressIsTheRateOfTheTable(t *testing.T) {
	for _, held := range []int64{1000, 1} {
		s := &side{now: Step{Number: 1, Clients: 4}}
		for i, phase := range []string{measure.Ramp, measure.Measured, measure.GracefulStop} {
			s.now.add(&measure.Interval{Start: time.Unix(int64(i), 0), Seconds: 1, Step: 1, Phase: phase, Clients: 4,
				Sum: measure.Sum{Done: held + int64(i)}}, false)
		}
		p := Point{Figures: []Figure{figure(quantities()[1], []pair{{&s.now, &s.now}})}}
		if f := p.Figure(Rate); !near(s.rate(), *f.Weir) {
			t.Errorf("%v files/s shown, %v in the table", s.rate(), *f.Weir)
		}
	}
}

func near(x, y float64) bool { return x > 0.999*y && x < 1.001*y }

func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Result)
		want   []string // codes without calibration., or parts of the text
		not    []string
		bad    bool
	}{
		"as it should be": {func(*Result) {}, []string{
			"requests.same", "server.same", "server.paced", "speed", "client", "use.represents", "rounds.several",
			"the same requests as one xrdcp: 5 a file against 5 (protocol, login, open, page read and close)",
			"With 1 client and without a pause between files weir moves 9.5 times as many files as xrdcp", "(1/60)",
		}, []string{"asynchronous", "use.requests", "use.cpu"}, false},
		"a request more": {func(r *Result) { r.given.Look[1].Seen.Requests = map[string]int64{"stat": 3, "open": 3} }, []string{
			"requests.differ", "stat", "use.represents", "use.requests",
		}, nil, false},
		"another option": {func(r *Result) {
			r.given.Look[0].Seen.Requests = map[string]int64{"protocol": 3, "login": 3, "open": 3, "page read": 3, "close": 3}
		},
			[]string{"requests.same", "asynchronous"}, nil, false},
		"only statistics": {func(r *Result) { r.given.Look, r.given.Encrypted = [2]Look{}, true },
			[]string{"requests.same", "requests.by_servers", "relay.encrypted"}, nil, false},
		"redirected": {func(r *Result) { r.given.Look[0].Redirected = true }, []string{"requests.by_servers", "redirected"}, nil, false},
		"nothing is seen": {func(r *Result) { r.given.Look, r.given.LookError = [2]Look{}, "no way"; blind(r) },
			[]string{"requests.unseen", "relay.failed", "server.unknown", "no way"}, []string{"use.represents"}, false},
		"encrypted": {func(r *Result) { r.given.Look, r.given.Encrypted = [2]Look{}, true; blind(r) },
			[]string{"requests.encrypted", "relay.encrypted"}, []string{"relay.failed"}, false},
		"too short": {func(r *Result) {
			blind(r)
			for i := range r.sides {
				for k := range r.sides[i] {
					r.sides[i][k].Local, r.sides[i][k].ServerCPU = true, new(float64)
				}
			}
		}, []string{"server.short", "coarse_cpu"}, []string{"server.unknown", "use.represents"}, false},
		"interfaces alone": {func(r *Result) {
			r.given.Look = [2]Look{}
			blind(r)
			for i := range r.sides {
				for k := range r.sides[i] {
					r.sides[i][k].Net = r.sides[i][k].Moved * 101 / 100
				}
			}
		}, []string{"interface bytes a byte 1.010 1.010"}, []string{"interfaces"}, false},
		"interfaces with others": {func(r *Result) {
			r.given.Look = [2]Look{}
			blind(r)
			for i := range r.sides {
				for k := range r.sides[i] {
					r.sides[i][k].Net = r.sides[i][k].Moved * 3
				}
			}
		}, []string{"interfaces"}, []string{"interface bytes a byte"}, false},
		"server does less": {func(r *Result) {
			for i := range r.sides[2] {
				*r.sides[2][i].ServerCPU /= 2
			}
		}, []string{"server.differs", "use.multiply", "multiply the server's CPU by 1.9"}, []string{"use.represents"}, false},
		"server does a little less": {func(r *Result) {
			for i := range r.sides[2] {
				*r.sides[2][i].ServerCPU *= 0.85
			}
		}, []string{"server.differs", "use.represents", "use.cpu"}, nil, false},
		"stalls": {func(r *Result) {
			for i := range r.sides[1] {
				h := &r.sides[1][i].All.Latency
				for range 1 + h.Count()/50 {
					h.Record(5 * time.Second)
				}
			}
		}, []string{"stalls", "stalls.remedy", " s each where half of them took 80.2 ms", "Without that weir would move 2.",
			"without a pause represents 2."}, nil, false},
		"stalls of the service": {func(r *Result) {
			for k := range 2 {
				for i := range r.sides[k] {
					h := &r.sides[k][i].All.Latency
					for range 1 + h.Count()/50 {
						h.Record(5 * time.Second)
					}
				}
			}
		}, nil, []string{"stalls"}, false},
		"a slow name server": {func(r *Result) {
			for i := range r.sides[1] {
				r.sides[1][i] = made(i+1, r.sides[1][i].Clients, 0.5*float64(r.sides[1][i].Clients), 6e-3, 6e-4)
			}
		}, []string{"waiting.program", "waiting.names", "short_steps"}, nil, false},
		"the service is slow when it is not busy": {func(r *Result) {
			for i := range r.sides[1] {
				r.sides[1][i] = made(i+1, r.sides[1][i].Clients, 5*float64(r.sides[1][i].Clients), 6e-3, 6e-4)
				r.sides[2][i] = made(i+1, r.sides[1][i].Clients, 6*float64(r.sides[1][i].Clients), 6e-3, 6e-4)
			}
		}, []string{"waiting.service"}, []string{"waiting.program"}, false},
		"a busy machine": {func(r *Result) {
			for i := range r.sides[1] {
				r.sides[1][i] = made(i+1, r.sides[1][i].Clients, 0.5*float64(r.sides[1][i].Clients), 6e-3, 6e-4)
				s := &r.sides[1][i]
				s.watch(&monitor.Sample{Seconds: 2, Cores: 2, CPU: &monitor.CPU{User: 0.5, System: 0.4, Idle: 0.1},
					Procs: []monitor.Proc{{Role: "client", User: 0.4}, {Role: "server", System: 0.4}}}, true)
			}
		}, []string{"busy_machine", "other programs used up to 70% of this machine's CPU"}, []string{"waiting.program"}, false},
		"the service is slow": {func(r *Result) {
			for i := range r.sides[1] {
				r.sides[1][i] = made(i+1, r.sides[1][i].Clients, 5, 6e-3, 6e-4)
				r.sides[0][i] = made(i+1, r.sides[1][i].Clients, 6, 6e-3, 6e-4)
			}
		}, nil, []string{"waiting.program", "waiting.service"}, false},
		"others": {func(r *Result) {
			r.given.Idle = []*monitor.Service{{Ops: map[string]int64{"read": 50}}}
			r.given.IdleSeconds = 1
		}, []string{"other_clients", "50 requests/s"}, nil, false},
		"interrupted": {func(r *Result) { r.given.Interrupted = true; r.sides[1] = r.sides[1][:1] },
			[]string{"interrupted", "rounds.one"}, nil, false},
		"doubts": {func(r *Result) {
			r.given.Doubts = []fact.Fact{fact.New("calibration.check_failed", "side", "weir", "check", "generator", "detail", "late")}
		}, []string{"check_failed"}, nil, false},
		"failures": {func(r *Result) { r.sides[1][0].Failed = 1000 }, []string{"failed"}, nil, true},
		"all fail": {func(r *Result) { r.sides[1] = []Step{{Number: 1, Clients: 1, Failed: 7}} },
			[]string{"nothing.failed", "failed (7)"}, nil, true},
		"nothing done": {func(r *Result) { r.sides[1] = nil }, []string{"nothing.no_step"}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := example()
			c.change(r)
			finish(r)
			var b bytes.Buffer
			require.NoError(t, r.WriteText(&b, 0))
			said := strings.Join(strings.Fields(b.String()), " ")
			found := func(x string) bool {
				if fact.Words()["calibration."+x] == "" {
					return strings.Contains(said, x)
				}
				return fact.Has(r.Facts, "calibration."+x)
			}
			for _, want := range c.want {
				if !found(want) {
					t.Errorf("%q is missing", want)
				}
			}
			for _, not := range c.not {
				if found(not) {
					t.Errorf("%q is there", not)
				}
			}
			if len(r.Facts) != len(r.Verdict)+len(r.Notes) {
				t.Errorf("%d facts of %d sentences and %d notes", len(r.Facts), len(r.Verdict), len(r.Notes))
			}
			if r.Valid == c.bad {
				t.Errorf("valid: %v", r.Valid)
			}
			if strings.Contains(said, "NaN") || strings.Contains(said, "%!") || t.Failed() {
				t.Errorf("text:\n%s", b.String())
			}
			b.Reset()
			if err := r.WriteJSON(&b); err != nil || !json.Valid(b.Bytes()) {
				t.Errorf("JSON: %v", err)
			}
		})
	}
}

// blind removes the servers' own statistics.
func blind(r *Result) {
	for _, side := range r.sides {
		for i := range side {
			side[i].Services, side[i].ServerCPU = nil, nil
		}
	}
}

// A step that was too short for its clients is counted whole.
func TestShortHold(t *testing.T) {
	s := Step{Clients: 4}
	at := time.Unix(1e9, 0)
	add := func(phase string, seconds float64, done int64, again bool) {
		if !again {
			at = at.Add(time.Second)
		}
		v := &measure.Interval{Start: at, Phase: phase, Seconds: seconds, Clients: 4, Sum: measure.Sum{Done: done, Moved: done}}
		for range done {
			v.Latency.Record(time.Second)
		}
		s.add(v, true)
	}
	add(measure.Warmup, 1, 0, false)
	add(measure.Measured, 2, 3, false)
	add(measure.Measured, 2, 4, true) // another server, the same span
	add(measure.GracefulStop, 1, 1, false)
	s.add(&measure.Interval{Phase: measure.GracefulStop, Seconds: 100}, true) // the other side's turn
	if h := s.span(); !s.slow() || h.Seconds != 4 || h.Done != 8 {
		t.Errorf("%+v", h)
	}
	add(measure.Measured, 1, 1, false)
	if h := s.span(); s.slow() || h.Seconds != 3 || h.Done != 8 || h.Latency.Count() != 8 {
		t.Errorf("%+v", h)
	}
}
