package scenario

import (
	"strings"
	"testing"

	"weir/storage/all"
)

func TestTargetsWithoutSchemeAreUnderstood(t *testing.T) {
	for target, want := range map[string]string{
		"127.0.0.1:8080/data": `did you mean "http://127.0.0.1:8080/data"?`,
		"localhost:8080":      `did you mean "http://localhost:8080"?`,
		"se.example.org/data": `did you mean "http://se.example.org/data"?`,
		"/scratch/data":       `did you mean "file:///scratch/data"?`,
		"./data":              "did you mean file:// and the folder's whole path?",
		"../data":             "did you mean file:// and the folder's whole path?",
		"data":                "has no scheme",
		"http://":             "has no host",
	} {
		_, err := DefaultWith(target, []string{"target=" + target})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s and nothing else", target, err, want)
		}
	}
	for _, good := range []string{"http://h/x", "davs://h:1/x", "file:///x", BuiltIn, "simulated://x?servers=1&service=1ms"} {
		sc, err := DefaultWith(good, nil)
		if err == nil && good != BuiltIn {
			_, err = sc.Plan(all.Drivers())
		}
		if err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}

// Each mistake is reported once.
func TestMistakesOfListsAreToldOnce(t *testing.T) {
	for _, set := range []string{"load.clients=abc", "load.clients=0", "load.clients=-5", "load.clients=1000000000", "load.rate=50",
		"load.rate=0/s"} {
		_, err := DefaultWith("http://h/x", []string{set})
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line", set, err)
		}
	}
}

func TestServerIsChecked(t *testing.T) {
	for text, want := range map[string]string{
		"target: built-in\nserver: {cpu_per_page: 300us, threads: 1, cpu: [1]}\n": "",
		"target: built-in\nserver: {cpu_per_page: 300us}\n":                       "",
		"target: http://a/\nserver: {cpu: [1]}\n": "s.yaml:2:10: server: only weir's own server can be " +
			"described; omit server, or use target: built-in",
		"target: built-in\nserver: {threads: 2}\n": "s.yaml:2:19: server.threads: needs server.cpu_per_page: " +
			"threads serve pages that cost CPU time",
		"target: built-in\nserver: {cpu_per_page: 1m}\n": "s.yaml:2:24: server.cpu_per_page: 1m; use up to 10s",
		"target: built-in\nserver: {cpu: [0, 5000]}\n": "s.yaml:2:19: server.cpu.1: 5000; use the number of a " +
			"processor, from 0 to 1023",
	} {
		s, err := Parse("s.yaml", []byte(text), nil, nil)
		if want == "" {
			if err != nil || s.Server.Threads != 1 {
				t.Errorf("%q: %v, %+v", text, err, s)
			}
		} else if err == nil || err.Error() != want {
			t.Errorf("%q:\n%v, want\n%s", text, err, want)
		}
	}
}
