package scenario

import (
	"encoding"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"weir/workload"
)

// A decoder fills a Scenario from nodes. It goes on after a mistake, so that
// all are found at once.
type decoder struct {
	*tree
	where map[string]place
}

func (d *decoder) scenario(root *node, s *Scenario) {
	if target := root.get("target"); target != nil && target.kind == list {
		d.endpoints(target, s)
		rest := *root
		rest.entries = slices.DeleteFunc(slices.Clone(root.entries), func(e entry) bool { return e.key == "target" })
		root = &rest
	}
	populations := root.get("populations")
	if populations != nil { // after the rest, which they take their defaults from
		rest := *root
		rest.entries = slices.DeleteFunc(slices.Clone(root.entries), func(e entry) bool { return e.key == "populations" })
		root = &rest
	}
	d.fields(root, "", reflect.ValueOf(s).Elem())
	if populations != nil {
		d.populations(populations, s)
	}
}

// endpoints decodes a list of targets.
func (d *decoder) endpoints(n *node, s *Scenario) {
	d.where["target"] = n.at
	for i, item := range n.items {
		to := &s.Target
		if i > 0 {
			s.Others = append(s.Others, "")
			to = &s.Others[i-1]
		}
		d.value(item, "target."+strconv.Itoa(i), reflect.ValueOf(to).Elem())
	}
}

// value decodes n into v; path is n's dotted path.
func (d *decoder) value(n *node, path string, v reflect.Value) {
	d.where[path] = n.at
	if n.kind == null {
		d.say(n.at, "%s has no value; give it one, or omit the key", path)
		return
	}
	switch x := v.Addr().Interface().(type) {
	case *Command:
		d.command(n, path, x)
	case *Counts:
		*x = d.counts(n, path)
	case *Rates:
		*x = d.rates(n, path)
	case *Links:
		d.links(n, path, x)
	case *workload.Span, *workload.Dist:
		d.drawn(n, path, v)
	case encoding.TextUnmarshaler:
		if d.plain(n, path) {
			d.wrong(n, path, x.UnmarshalText([]byte(n.text)))
		}
	default:
		d.basic(n, path, v)
	}
}

func (d *decoder) basic(n *node, path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		d.fields(n, path, v)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, path, v.Elem())
	case reflect.Slice:
		d.slice(n, path, v)
	case reflect.Map:
		d.named(n, path, v)
	default:
		d.scalar(n, path, v)
	}
}

// fields decodes a map into a struct.
func (d *decoder) fields(n *node, path string, v reflect.Value) {
	if n.kind != mapping {
		known := fieldNames(v.Type())
		d.say(n.at, "%s: %s; write a map with keys such as %s", path, n.what(), strings.Join(known[:min(3, len(known))], ", "))
		return
	}
	for _, e := range n.entries {
		field, ok := fieldOf(v, e.key)
		if !ok {
			d.unknown(e, path, v.Type())
			continue
		}
		d.value(e.value, join(path, e.key), field)
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// fieldNames returns the keys that a struct takes, in its order.
func fieldNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

func fieldOf(v reflect.Value, key string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ","); name == key && name != "" && name != "-" {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// unknown says what would be right instead of a key that is not there. It
// never quotes the value: it may be a secret.
func (d *decoder) unknown(e entry, path string, t reflect.Type) {
	full := join(path, e.key)
	known := fieldNames(t)
	if d.format != nil {
		d.unknownOther(e, full, known)
		return
	}
	if text, ok := secretKeys()[strings.ToLower(e.key)]; ok {
		d.say(e.at, "%s: a scenario must not contain secrets; %s", full, text)
		return
	}
	if _, err := strconv.ParseFloat(e.key, 64); err == nil { // {clients: 1,2,4} are three keys
		d.say(e.at, "unknown key %s; several values need brackets, as in [1, 2, 4]", full)
		return
	}
	if path == "" {
		known = append(known, "variables")
	}
	d.say(e.at, "unknown key %s%s", full, meant(e.key, known))
}

func secretKeys() map[string]string {
	password := "name where it is kept with auth.password_file or auth.password_variable"
	token := "name where it is kept with auth.token_file or auth.token_variable"
	return map[string]string{
		"password": password, "passwd": password, "pass": password, "passphrase": password, "secret": password, "secret_key": password,
		"secret_access_key": password, "access_key": "write it as auth.user, and name where the secret key is kept with auth.password_file or " +
			"auth.password_variable",
		"token": token, "bearer": token, "bearer_token": token, "authorization": token, "api_key": token,
		"private_key": "name its file with auth.key_file",
	}
}

// plain says whether n is a single value, and that it should be one.
func (d *decoder) plain(n *node, path string) bool {
	if n.kind != scalar {
		d.say(n.at, "%s: %s; write one value", path, n.what())
	}
	return n.kind == scalar
}

// wrong reports err, if any, about the value of path.
func (d *decoder) wrong(n *node, path string, err error) {
	if err != nil {
		d.say(n.at, "%s: %v", path, err)
	}
}

func (d *decoder) scalar(n *node, path string, v reflect.Value) {
	if !d.plain(n, path) {
		return
	}
	switch v.Kind() {
	case reflect.String:
		d.word(n, path)
		v.SetString(n.text)
	case reflect.Bool:
		if n.text != "true" && n.text != "false" {
			d.say(n.at, "%s: %s; write true or false", path, quote(n.text))
		}
		v.SetBool(n.text == "true")
	case reflect.Int, reflect.Int64:
		x, err := whole(n.text)
		d.wrong(n, path, err)
		v.SetInt(x)
	case reflect.Uint64:
		x, err := strconv.ParseUint(n.text, 0, 64)
		if err != nil {
			d.say(n.at, "%s: %s; write a whole number from 0 to 18446744073709551615", path, quote(n.text))
		}
		v.SetUint(x)
	case reflect.Float64:
		x, err := strconv.ParseFloat(n.text, 64)
		if err != nil || x-x != 0 {
			d.say(n.at, "%s: %s; write a number", path, quote(n.text))
			return
		}
		v.SetFloat(x)
	}
}

func whole(text string) (int64, error) {
	x, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errors.New(quote(text) + ": too large")
	case err != nil:
		return 0, errors.New(quote(text) + "; write a whole number")
	case x < 0:
		return 0, errors.New(quote(text) + ": cannot be negative")
	}
	return x, nil
}

// word checks a value of which only some are known.
func (d *decoder) word(n *node, path string) {
	known := d.words(strings.TrimPrefix(index(path), "populations.[]."))
	if known == nil || slices.Contains(known, n.text) {
		return
	}
	if text, ok := laterWords()[path+"="+n.text]; ok {
		d.say(n.at, "%s: %s %s", path, quote(n.text), text)
		return
	}
	key := strings.TrimSuffix(index(path), ".[]")
	d.say(n.at, "%s: unknown %s %s%s", path, key[strings.LastIndexByte(key, '.')+1:], quote(n.text), meant(n.text, known))
}

// index replaces the numbers in a path: hosts.3.role is hosts.[].role.
func index(path string) string {
	parts := strings.Split(path, ".")
	for i, p := range parts {
		if _, err := strconv.Atoi(p); err == nil {
			parts[i] = "[]"
		}
	}
	return strings.Join(parts, ".")
}

func laterWords() map[string]string {
	return map[string]string{
		"workload.kind=copy": "is not available yet; use read, write or mix",
		"workload.kind=command": "is not a kind of work; use command-job for a program of your own that does its work on each file, " +
			"or name with client the program that reads or writes",
	}
}

func (d *decoder) slice(n *node, path string, v reflect.Value) {
	if n.kind != list {
		d.say(n.at, "%s: %s; write a list, as in [a, b]", path, n.what())
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.items), len(n.items)))
	for i, item := range n.items {
		d.value(item, path+"."+strconv.Itoa(i), v.Index(i))
	}
}

// weights decodes a map of names and how often they are drawn.
func (d *decoder) weights(n *node, path string, v reflect.Value) {
	if n.kind != mapping {
		d.say(n.at, "%s: %s; write weights, as in {a: 3, b: 1}", path, n.what())
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, e := range n.entries {
		weight := reflect.New(v.Type().Elem()).Elem()
		before := len(d.mistakes)
		d.value(e.value, join(path, e.key), weight)
		if len(d.mistakes) == before && weight.Float() < 0 {
			d.say(e.value.at, "%s: %s; a weight cannot be negative", join(path, e.key), quote(e.value.text))
		}
		v.SetMapIndex(reflect.ValueOf(e.key), weight)
	}
}
