package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/internal/db"
	"weir/scenario"
)

// A configFile is the file of --config. Its keys are the command's flags, with _ for -, and the
// keys of a struct. Flags of the command line override it.
type configFile struct {
	path  string
	extra any // pointer to a struct with the keys that are no flags; nil: there are none
	doc   *scenario.Document
}

// largestConfig is the size that is read of a file, in bytes.
const largestConfig = 1 << 20

// notInFiles are the flags that are not keys: of the command line only, or maps in files.
func notInFiles() []string {
	return []string{"config", "help", "while-stdin", "name", "share", "user-issuer"}
}

func (f *configFile) add(fs *pflag.FlagSet, extra any) {
	f.extra = extra
	fs.StringVar(&f.path, "config", "", "read settings from this YAML `FILE`; flags override it (see weir config --help)")
}

// A flagError is a wrong value of a flag, which may be from a file.
type flagError struct {
	flag string
	error
}

func (e flagError) Unwrap() error { return e.error }

// about returns err as an error about a flag.
func about(flag string, err error) error {
	if err == nil {
		return nil
	}
	return flagError{flag, err}
}

// given returns name if value is not "".
func given(name, value string) string {
	if value == "" {
		return ""
	}
	return name
}

// load reads the file, if there is one, into the flags of c that the command line does not have,
// and calls check. Its errors are usage errors, with their place in the file.
func (f *configFile) load(c *cobra.Command, check func() error) error {
	fs := c.Flags()
	if f.path == "" {
		if err := check(); err != nil {
			return usageError(c, err)
		}
		return nil
	}
	data, err := readLimited(f.path)
	if err != nil {
		return usagef("--config: %w", err)
	}
	of := f.structOf(fs)
	values := reflect.New(of)
	f.doc = configFormat(c.Name()).Read(f.path, data, values.Interface())
	if f.doc.Err() == nil {
		f.apply(fs, values.Elem())
	}
	if f.doc.Err() == nil {
		f.checked(check())
	}
	return usage(f.doc.Err())
}

// checked adds what check has found as a mistake of the file.
func (f *configFile) checked(err error) {
	var of flagError
	switch {
	case err == nil:
	case errors.As(err, &of):
		text, one := strings.CutPrefix(err.Error(), "--"+of.flag)
		if one {
			text = keyOf(of.flag) + text
		}
		f.doc.Wrong(keyOf(of.flag), errors.New(text))
	default:
		f.doc.Wrong("", err)
	}
}

func readLimited(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, largestConfig))
}

// keyOf returns the key of a flag.
func keyOf(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

// configFlags returns the flags that files may set.
func configFlags(fs *pflag.FlagSet) (all []*pflag.Flag) {
	fs.VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden && !slices.Contains(notInFiles(), flag.Name) {
			all = append(all, flag)
		}
	})
	return all
}

// structOf returns the type that the file is decoded into: a field for each flag and key.
func (f *configFile) structOf(fs *pflag.FlagSet) reflect.Type {
	var fields []reflect.StructField
	for i, flag := range configFlags(fs) {
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
		tag := fmt.Sprintf("yaml:%q jsonschema_description:%s", keyOf(flag.Name), strconv.Quote(text))
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
func (f *configFile) apply(fs *pflag.FlagSet, values reflect.Value) {
	for i, flag := range configFlags(fs) {
		key, v := keyOf(flag.Name), values.FieldByName("Flag"+strconv.Itoa(i))
		if !f.doc.Has(key) || flag.Changed {
			continue
		}
		if key == "db" && db.Public(v.String()) != v.String() {
			f.doc.Wrong(key, errors.New("db: a configuration must not contain secrets; name a file with the address with db_file, or set WEIR_DB"))
			continue
		}
		if err := f.set(fs, flag, v); err != nil {
			f.doc.Wrong(key, fmt.Errorf("%s: %w", key, err))
		}
	}
	if f.extra != nil {
		to := reflect.ValueOf(f.extra).Elem()
		for i := range to.NumField() {
			to.Field(i).Set(values.FieldByName(to.Type().Field(i).Name))
		}
	}
}

func (f *configFile) set(fs *pflag.FlagSet, flag *pflag.Flag, v reflect.Value) error {
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
		text = f.resolve(text)
	}
	flag.Changed = true
	return flag.Value.Set(text)
}

// resolve makes a path relative to the file's folder usable from here. URLs stay as they are.
func (f *configFile) resolve(path string) string {
	if path == "" || filepath.IsAbs(path) || strings.Contains(path, "://") || strings.HasPrefix(path, "sqlite:") {
		return path
	}
	return filepath.Join(filepath.Dir(f.path), path)
}

// secret reads a secret that a key names, from a file or from the environment. where is the dotted
// path of the keys without their endings.
func (f *configFile) secret(where, file, variable string) string {
	switch {
	case file != "" && variable != "":
		f.doc.Wrong(where+"_file", fmt.Errorf("%s_file and %s_variable: choose one", where, where))
	case file != "":
		text, err := fileText(f.resolve(file))
		if err != nil || text == "" {
			f.doc.Wrong(where+"_file", fmt.Errorf("%s_file: cannot read a secret: %w", where, errors.Join(err, emptyFile(file, text, err))))
		}
		return text
	case variable != "":
		text := os.Getenv(variable)
		if text == "" {
			f.doc.Wrong(where+"_variable", fmt.Errorf("%s_variable: the environment has no %s", where, line(variable)))
		}
		return text
	}
	return ""
}

func emptyFile(path, text string, err error) error {
	if err == nil && text == "" {
		return fmt.Errorf("%s is empty", line(path))
	}
	return nil
}
