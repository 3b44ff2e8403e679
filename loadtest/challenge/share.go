package challenge

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"

	"weir/internal/document"
)

// A Share is a share of the target rates: 1 is 100%, and more is allowed. Its text is "50%".
type Share float64

// maxShare is the largest share of a stage.
const maxShare = 10

// String returns s in percent. UnmarshalText reads it back.
func (s Share) String() string {
	return strconv.FormatFloat(math.Round(float64(s)*1e10)/1e8, 'f', -1, 64) + "%"
}

// MarshalText writes s in percent.
func (s Share) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses a share in percent. Numbers without % are refused, except 0: they could mean
// either.
func (s *Share) UnmarshalText(text []byte) error {
	word := strings.TrimSpace(string(text))
	number, percent := strings.CutSuffix(word, "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	switch {
	case err != nil || math.IsNaN(x):
		return fmt.Errorf("%s is not a share; write percent, as in 50%%", document.Quote(word))
	case !percent && x != 0:
		return fmt.Errorf("%s has no unit; write percent, as in %s%%", document.Quote(word), percentOf(x))
	case x < 0:
		return fmt.Errorf("%s is negative; use 0%% for a pause", document.Quote(word))
	case x > 100*maxShare:
		return fmt.Errorf("%s is more than %d%%; raise the rates of the links instead", document.Quote(word), 100*maxShare)
	}
	*s = Share(x / 100)
	return nil
}

// percentOf returns the percent that a number without a unit probably means: 0.5 and 50 are 50%.
func percentOf(x float64) string {
	if x <= 2 {
		x *= 100
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// shareShape is the schema of a share.
func shareShape(t reflect.Type) *jsonschema.Schema {
	if t != reflect.TypeFor[Share]() {
		return nil
	}
	return document.AnyOf(document.Pattern(`^[0-9]+(\.[0-9]+)? ?%$`, "10%", "100%"), &jsonschema.Schema{Const: 0})
}
