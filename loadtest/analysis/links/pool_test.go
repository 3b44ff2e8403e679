package links

import (
	"reflect"
	"slices"
	"testing"
)

// Minutes that are judged together have the sum of every record of each of them.
func TestJoinedMinutes(t *testing.T) {
	t.Parallel()
	var one, two minute
	v := reflect.ValueOf(&one).Elem()
	fill := func(x reflect.Value) {
		switch {
		case x.CanFloat():
			reflect.NewAt(x.Type(), x.Addr().UnsafePointer()).Elem().SetFloat(3)
		case x.CanInt():
			reflect.NewAt(x.Type(), x.Addr().UnsafePointer()).Elem().SetInt(3)
		}
	}
	kept := []string{"stage", "low", "high", "classes"} // the last, the least, the most and the last
	for i := range v.NumField() {
		switch x := v.Field(i); {
		case slices.Contains(kept, v.Type().Field(i).Name):
		case x.Kind() == reflect.Array:
			for k := range x.Len() {
				if e := x.Index(k); e.Kind() == reflect.Struct {
					for n := range e.NumField() {
						fill(e.Field(n))
					}
				} else {
					fill(e)
				}
			}
		default:
			fill(x)
		}
	}
	two.join(&one)
	if two != one {
		t.Errorf("one minute: %+v, joined: %+v", one, two)
	}
}
