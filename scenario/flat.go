package scenario

import (
	"encoding"
	"reflect"
)

// defaultValues returns the values of keys that are left out, by their dotted
// paths: texts with units, numbers and true or false. Keys that are simply
// off are not among them.
func defaultValues() map[string]any {
	s := defaults()
	out := map[string]any{}
	flatten(out, "", reflect.ValueOf(s).Elem())
	job := defaultJob()
	job.Copy = defaultCopy
	flatten(out, "workload.job", reflect.ValueOf(job))
	out["load.clients"] = "1,2,4,8,16,32,64,128,256"
	out["workload.think"] = "0s"
	out["workload.retries"] = 0
	out["workload.skew"] = defaultSkew
	out["workload.size"], out["files.make.size"] = defaultSize.String(), defaultSize.String()
	out["workload.part.count"], out["workload.part.order"] = 1, "random"
	return out
}

func flatten(out map[string]any, path string, v reflect.Value) {
	for _, name := range fieldNames(v.Type()) {
		f, _ := fieldOf(v, name)
		full := join(path, name)
		if f.IsZero() {
			continue
		}
		if m, ok := f.Interface().(encoding.TextMarshaler); ok {
			if text, err := m.MarshalText(); err == nil {
				out[full] = string(text)
			}
			continue
		}
		switch f.Kind() {
		case reflect.Struct:
			flatten(out, full, f)
		case reflect.Slice, reflect.Map, reflect.Pointer: // none has a default that is written whole
		default:
			out[full] = f.Interface()
		}
	}
}
