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

// One mistake is told once.
func TestMistakesOfListsAreToldOnce(t *testing.T) {
	for _, set := range []string{"load.clients=abc", "load.clients=0", "load.clients=-5", "load.clients=1000000000", "load.rate=50",
		"load.rate=0/s"} {
		_, err := DefaultWith("http://h/x", []string{set})
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line", set, err)
		}
	}
}
