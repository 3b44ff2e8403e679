package krb5

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxInclude limits the depth of include lines, which could include each other.
const maxInclude = 10

// A profile is the contents of a krb5.conf(5): values by their path in lower case for section and
// last key, such as "realms/EXAMPLE.ORG/kdc".
type profile map[string][]string

// add appends the values of a configuration text. include reads another file or folder that the
// text names.
func (p profile) add(text string, include func(directive, name string) error) error {
	var path []string // section and the blocks that are open
	scan := bufio.NewScanner(strings.NewReader(text))
	for n := 1; scan.Scan(); n++ {
		line := strings.TrimSpace(scan.Text())
		switch key, value, isRelation := strings.Cut(line, "="); {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			path = []string{strings.ToLower(strings.Trim(line, "[]* \t"))}
		case strings.HasPrefix(line, "include ") || strings.HasPrefix(line, "includedir "):
			directive, name, _ := strings.Cut(line, " ")
			if err := include(directive, strings.TrimSpace(name)); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		case line[0] == '}':
			if len(path) < 2 {
				return fmt.Errorf("line %d: } closes nothing", n)
			}
			path = path[:len(path)-1]
		case strings.HasPrefix(line, "module "): // plug-ins of the C library
		case !isRelation || len(path) == 0:
			return fmt.Errorf("line %d: %q: want [section], key = value, key = { or }", n, clip(line))
		default:
			key, value = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(key), "*")), strings.TrimSpace(value)
			if value == "{" {
				path = append(path, key)
				continue
			}
			where := strings.Join(path, "/") + "/" + strings.ToLower(key)
			p[where] = append(p[where], strings.Trim(value, `"`))
		}
	}
	if err := scan.Err(); err != nil {
		return err
	}
	if len(path) > 1 {
		return fmt.Errorf("the block %s = { is not closed", path[len(path)-1])
	}
	return nil
}

// readProfile reads a krb5.conf and the files that it includes. Like KRB5_CONFIG, files may name
// several files, separated by colons; missing files are skipped as long as one file exists.
func readProfile(files string) (profile, error) {
	p, read := profile{}, 0
	var missing error
	for file := range strings.SplitSeq(files, ":") {
		if file == "" {
			continue
		}
		err := p.file(file, 0)
		if errors.Is(err, os.ErrNotExist) {
			missing = err
			continue
		}
		if err != nil {
			return nil, err
		}
		read++
	}
	if read == 0 {
		return nil, fmt.Errorf("no Kerberos configuration: %w: set auth.krb5_file or KRB5_CONFIG", missing)
	}
	return p, nil
}

func (p profile) file(name string, depth int) error {
	if depth > maxInclude {
		return fmt.Errorf("%s: more than %d files include each other", name, maxInclude)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	err = p.add(string(text), func(directive, other string) error {
		if directive == "include" {
			return p.file(other, depth+1)
		}
		return p.folder(other, depth+1)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// folder reads the files of an includedir: names of letters, digits, - and _, or ending in .conf.
func (p profile) folder(name string, depth int) error {
	entries, err := os.ReadDir(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil // distributions name folders that only exist if they are not empty
	}
	if err != nil {
		return err
	}
	const taken = "-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	odd := func(r rune) bool { return !strings.ContainsRune(taken, r) }
	for _, e := range entries {
		stem := strings.TrimSuffix(e.Name(), ".conf")
		if e.IsDir() || stem == "" || strings.ContainsFunc(stem, odd) {
			continue
		}
		if err := p.file(filepath.Join(name, e.Name()), depth); err != nil {
			return err
		}
	}
	return nil
}

// first returns the first value of a path, or otherwise.
func (p profile) first(path, otherwise string) string {
	if v := p[path]; len(v) > 0 {
		return v[0]
	}
	return otherwise
}

// on reports whether the value of a path is true, by the rules of the C library.
func (p profile) on(path string, otherwise bool) bool {
	v := p.first(path, "")
	if v == "" {
		return otherwise
	}
	return slices.Contains([]string{"y", "yes", "true", "t", "1", "on"}, strings.ToLower(v))
}

// lasting reads a duration: 10h, 1d2h, 36000, 10:30[:15].
func (p profile) lasting(path string, otherwise time.Duration) (time.Duration, error) {
	v := strings.ReplaceAll(p.first(path, ""), " ", "")
	if v == "" {
		return otherwise, nil
	}
	if d, ok := parseDuration(v); ok {
		return d, nil
	}
	return 0, fmt.Errorf("%s = %s: want a duration such as 10h, 1d, 36000 (seconds) or 10:30", path, clip(v))
}

func parseDuration(v string) (time.Duration, bool) {
	if n, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(n) * time.Second, true
	}
	var total time.Duration
	if days, rest, ok := strings.Cut(v, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, false
		}
		if total, v = time.Duration(n)*24*time.Hour, rest; v == "" {
			return total, true
		}
	}
	if parts := strings.Split(v, ":"); len(parts) == 2 || len(parts) == 3 {
		v = parts[0] + "h" + parts[1] + "m"
		if len(parts) == 3 {
			v += parts[2] + "s"
		}
	}
	d, err := time.ParseDuration(v)
	return total + d, err == nil && d >= 0
}

// clip shortens text from elsewhere for errors.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}
