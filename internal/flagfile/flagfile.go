// Package flagfile reads the settings of a command from a YAML file. Its keys are the command's flags, with _ for -, and the keys of a
// struct. Flags of the command line override it; mistakes have their place in the file.
package flagfile

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"weir/internal/db"
	"weir/internal/document"
	"weir/internal/say"
)

// A File is the file of --config. Its zero value has no keys but flags, and no path.
type File struct {
	Path string

	extra any      // pointer to a struct with the keys that are not flags, or nil
	omit  []string // flags that are not keys
	doc   *document.Document
	wrong map[string]bool // flags that refused the value of the file
}

// largest is the size that is read of a file, in bytes.
const largest = 1 << 20

// Add adds --config to fs. extra points to a struct with the keys that are not flags; it is nil if
// there are no such keys. The flags config, help, while-stdin and the flags in omit cannot be set
// in the file.
func (f *File) Add(fs *pflag.FlagSet, extra any, omit ...string) {
	f.extra, f.omit = extra, append(omit, "config", "help", "while-stdin")
	fs.StringVar(&f.Path, "config", "", "read settings from this YAML `FILE`; flags override it (see weir config --help)")
}

// A flagError is a wrong value of flags, which may be from a file. Its place is that of the first flag.
type flagError struct {
	flags []string
	error
}

func (e flagError) Unwrap() error { return e.error }

// If returns an error about flags, whose names stand in flags with spaces between them, if wrong is true, otherwise nil. The place of the
// error in a file is that of the first flag. flags is empty in commands without a file.
func If(wrong bool, flags, format string, args ...any) error {
	if !wrong {
		return nil
	}
	return flagError{strings.Fields(flags), fmt.Errorf(format, args...)}
}

// Wrap returns err as an error about a flag, which its text begins with; nil for nil.
func Wrap(flag string, err error) error { return If(err != nil, flag, "--%s: %w", flag, err) }

// An errorList is several errors, one a line.
type errorList []error

// Error implements error.
func (l errorList) Error() string { return errors.Join(l...).Error() }

// All returns all errors that are not nil as one error, nil if there are no errors.
func All(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	return errorList(errs)
}

// Readable returns an error if the file or folder that a flag names, if it names one, cannot be read.
func Readable(flag, path string) error {
	if path == "" {
		return nil
	}
	return Wrap(flag, readable(path))
}

func readable(path string) error {
	f, err := os.Open(path)
	if err == nil {
		err = f.Close()
	}
	return err
}

// Pair returns an error if only one of two flags has a value, or if they are not the files of a certificate and its key.
func Pair(cert, certFile, key, keyFile string) error {
	err := All(Together(cert, certFile, key, keyFile), Readable(cert, certFile), Readable(key, keyFile))
	if err != nil || certFile == "" {
		return err
	}
	_, err = tls.LoadX509KeyPair(certFile, keyFile)
	return If(err != nil, cert+" "+key, "--%s and --%s: %w", cert, key, err)
}

// Listen returns an error if the value of a flag is not an address HOST:PORT to listen at.
func Listen(flag, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	return If(err != nil, flag, "--%s %s: use HOST:PORT, as in 0.0.0.0:9443", flag, say.Plain(address))
}

// Together returns an error if of two flags only one has a value.
func Together(a, valueOfA, b, valueOfB string) error {
	flags := a + " " + b
	if valueOfA == "" {
		flags = b + " " + a
	}
	return If((valueOfA == "") != (valueOfB == ""), flags, "--%s and --%s must be given together", a, b)
}

// Read reports whether a file was read.
func (f *File) Read() bool { return f.doc != nil }

// Wrong notes a mistake at the dotted path of a key of the file that was read. keys are the keys below path that it is about; without
// them it is about all of path. It notes none about values that could not be read.
func (f *File) Wrong(path string, err error, keys ...string) {
	about := []string{path}
	if len(keys) > 0 {
		about = nil
	}
	for _, key := range keys {
		about = append(about, document.Join(path, key))
	}
	if !slices.ContainsFunc(about, f.doc.Unread) {
		f.doc.Mistake(path, err)
	}
}

// Load reads the file into the flags that the command line does not have, and calls check, which may return several errors (All). Load
// returns all mistakes at once, with their places in the file. It leaves out errors of check about flags whose values could not be read.
func (f *File) Load(fs *pflag.FlagSet, format document.Format, check func() error) error {
	data, err := readLimited(f.Path)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	values := reflect.New(f.structOf(fs))
	f.doc = format.Read(f.Path, data, values.Interface())
	f.wrong = map[string]bool{}
	if !f.doc.Unread("") {
		f.apply(fs, values.Elem())
		f.checked(check())
	}
	return f.doc.Err()
}

// Schema returns the JSON Schema of files with the flags in fs.
func (f *File) Schema(fs *pflag.FlagSet, format document.Format) ([]byte, error) {
	return format.Schema(f.structOf(fs))
}

// checked adds the errors of check as mistakes of the file.
func (f *File) checked(err error) {
	var list errorList
	var of flagError
	switch {
	case err == nil:
	case errors.As(err, &list):
		for _, one := range list {
			f.checked(one)
		}
	case errors.As(err, &of) && len(of.flags) > 0:
		if slices.ContainsFunc(of.flags, f.unread) {
			return
		}
		text := err.Error()
		for _, flag := range of.flags {
			text = strings.ReplaceAll(text, "--"+flag, keyOf(flag))
		}
		f.doc.Mistake(keyOf(of.flags[0]), errors.New(text))
	default:
		f.doc.Mistake("", err)
	}
}

// unread reports whether the file has a value of a flag that could not be read.
func (f *File) unread(flag string) bool { return f.wrong[flag] || f.doc.Unread(keyOf(flag)) }

func readLimited(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, largest))
}

// keyOf returns the key of a flag.
func keyOf(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

// keys returns the flags that files may set.
func (f *File) keys(fs *pflag.FlagSet) (all []*pflag.Flag) {
	fs.VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden && !slices.Contains(f.omit, flag.Name) {
			all = append(all, flag)
		}
	})
	return all
}

// structOf returns the type that the file is decoded into: a field for each flag and key.
func (f *File) structOf(fs *pflag.FlagSet) reflect.Type {
	var fields []reflect.StructField
	for i, flag := range f.keys(fs) {
		of := reflect.TypeFor[string]()
		switch flag.Value.Type() {
		case "bool":
			of = reflect.TypeFor[bool]()
		case "int":
			of = reflect.TypeFor[int]()
		case "uint64":
			of = reflect.TypeFor[uint64]()
		case "stringArray", "stringSlice":
			of = reflect.TypeFor[[]string]()
		}
		_, text := pflag.UnquoteUsage(flag)
		tag := fmt.Sprintf("yaml:%q doc:%s", keyOf(flag.Name), strconv.Quote(text))
		fields = append(fields, reflect.StructField{Name: "Flag" + strconv.Itoa(i), Type: of, Tag: reflect.StructTag(tag)})
	}
	if f.extra != nil {
		fields = append(fields, reflect.VisibleFields(reflect.TypeOf(f.extra).Elem())...)
	}
	for i := range fields {
		fields[i].Index, fields[i].Offset = nil, 0
	}
	return reflect.StructOf(fields)
}

// apply sets the flags that the command line does not have, and the extra keys.
func (f *File) apply(fs *pflag.FlagSet, values reflect.Value) {
	for i, flag := range f.keys(fs) {
		key, v := keyOf(flag.Name), values.FieldByName("Flag"+strconv.Itoa(i))
		if !f.doc.Has(key) || f.doc.Unread(key) || flag.Changed {
			continue
		}
		err := f.set(flag, v)
		if key == "db" && db.Public(v.String()) != v.String() {
			err = errors.New("a configuration must not contain secrets; name a file with the address with db_file, or set WEIR_DB")
		}
		if err != nil {
			f.doc.Mistake(key, fmt.Errorf("%s: %w", key, err))
			f.wrong[flag.Name] = true
		}
	}
	if f.extra != nil {
		to := reflect.ValueOf(f.extra).Elem()
		for i := range to.NumField() {
			to.Field(i).Set(values.FieldByName(to.Type().Field(i).Name))
		}
	}
}

func (f *File) set(flag *pflag.Flag, v reflect.Value) error {
	if v.Kind() == reflect.Slice {
		list, ok := flag.Value.(pflag.SliceValue)
		texts, isTexts := v.Interface().([]string)
		if !ok || !isTexts {
			return errors.New("this flag takes no list")
		}
		flag.Changed = true
		return list.Replace(texts)
	}
	text := fmt.Sprint(v.Interface())
	if name, _ := pflag.UnquoteUsage(flag); name == "FILE" || name == "DIR" {
		text = f.Resolve(text)
	}
	flag.Changed = true
	return flag.Value.Set(text)
}

// Resolve makes a path relative to the file's folder usable from here. URLs stay as they are.
func (f *File) Resolve(path string) string {
	if path == "" || filepath.IsAbs(path) || strings.Contains(path, "://") || strings.HasPrefix(path, "sqlite:") {
		return path
	}
	return filepath.Join(filepath.Dir(f.Path), path)
}

// unreadable is the value of secrets that cannot be read, so that no key seems to be missing.
const unreadable = "unreadable"

// Secret reads a secret that a key names, from a file or from the environment. where is the dotted
// path of the keys without their endings.
func (f *File) Secret(where, file, variable string) string {
	switch {
	case file != "" && variable != "":
		f.doc.Mistake(where+"_file", fmt.Errorf("%s_file and %s_variable: choose one", where, where))
		return unreadable
	case file != "":
		data, err := os.ReadFile(f.Resolve(file))
		text := strings.TrimSpace(string(data))
		if err == nil && text == "" {
			err = fmt.Errorf("%s is empty", say.Plain(file))
		}
		if err != nil {
			f.doc.Mistake(where+"_file", fmt.Errorf("%s_file: cannot read a secret: %w", where, err))
			return unreadable
		}
		return text
	case variable != "":
		text := os.Getenv(variable)
		if text == "" {
			f.doc.Mistake(where+"_variable", fmt.Errorf("%s_variable: the environment has no %s", where, say.Plain(variable)))
			return unreadable
		}
		return text
	}
	return ""
}
