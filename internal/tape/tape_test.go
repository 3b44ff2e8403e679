package tape

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"weir/internal/tpc"
)

// The API of an endpoint is at its own host: its token is not sent elsewhere. Answers that make no sense are errors.
func TestDiscover(t *testing.T) {
	t.Parallel()
	answer := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != WellKnown || answer == "" {
			http.NotFound(w, r)
			return
		}
		_, _ = fmt.Fprint(w, answer)
	}))
	defer s.Close()
	c := tpc.New(tpc.Options{})
	defer c.Close()
	for _, one := range []struct {
		answer, want string
		kind         tpc.Kind
	}{
		{"", "", tpc.Unsupported}, {"{", "", tpc.Broken}, {"{}", "", tpc.Unsupported},
		{`{"endpoints":[{"uri":"` + s.URL + `/api/v1/","version":"v1"}],"sitename":"x"}`, s.URL + "/api/v1", ""},
		{`{"endpoints":[{"uri":"` + s.URL + `/api/v2","version":"v2"}]}`, "", tpc.Unsupported},
		{`{"endpoints":[{"uri":"https://127.0.0.1:99/api","version":"v1"}]}`, "https://127.0.0.1:99/api", ""},
		{`{"endpoints":[{"uri":"https://other.example.org/api","version":"v1"}]}`, "", tpc.Unsupported},
		{`{"endpoints":[{"uri":"ftp://127.0.0.1/api","version":"v1"}]}`, "", tpc.Unsupported},
		{`{"endpoints":[{"uri":"http://user@127.0.0.1/api","version":"v1"}]}`, "", tpc.Unsupported},
	} {
		answer = one.answer
		api, err := Discover(t.Context(), c, tpc.Target{URL: s.URL + "/data/file", Token: "secret"})
		if api.Target.URL != one.want || tpc.KindOf(err) != one.kind || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %q, %v", one.answer, api.Target.URL, err)
		}
	}
	s.Close()
	var e *tpc.Error
	if _, err := Discover(t.Context(), c, tpc.Target{URL: s.URL}); !errors.As(err, &e) || e.Kind != tpc.Unreachable {
		t.Errorf("%v", err)
	}
}
