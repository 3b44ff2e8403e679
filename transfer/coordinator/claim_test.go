package coordinator

import (
	"strings"
	"testing"

	"weir/lab/dbtest"
)

// A second coordinator with the same database and another state folder is refused with the name of
// the first coordinator. It can start after the first coordinator has ended.
func TestOneCoordinatorPerDatabase(t *testing.T) {
	t.Parallel()
	first := start(t, Config{DB: dbtest.Server(t)})
	conf := first.conf
	conf.State = t.TempDir()
	if c, err := Open(t.Context(), conf); err == nil || !strings.Contains(err.Error(), "another coordinator has this database") ||
		!strings.Contains(err.Error(), "by the weir coordinator of ") {
		t.Errorf("a second one: %v, %v", c, err)
	}
	if _, err := first.Client.Sites(t.Context()); err != nil {
		t.Error(err)
	}
	first.End()
	second := start(t, conf)
	if _, err := second.Client.Sites(t.Context()); err != nil {
		t.Error(err)
	}
}
