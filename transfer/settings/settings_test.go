package settings

import (
	"slices"
	"testing"

	"weir/internal/tags"
	"weir/transfer/notify"
)

// The tag of notify.[].on has all ends of requests.
func TestEnds(t *testing.T) {
	var ends []string
	for _, s := range notify.Ends() {
		ends = append(ends, string(s))
	}
	if words := tags.Words[Keys]("notify.on"); !slices.Equal(words, ends) {
		t.Errorf("%v, expected %v", words, ends)
	}
}
