package simulated

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/redact"
	"weir/internal/unit"
	"weir/storage"
)

// A Config has the settings of a service in a URL.
type Config struct {
	Servers   int           // servers=4
	Service   time.Duration // service=10ms, the mean
	Constant  bool          // dist=constant or exponential, the default
	Bandwidth float64       // bandwidth=1Gbit/s, in bytes per second; 0 is without limit
	Connect   time.Duration // connect=1ms
	Seed      uint64        // seed=1
	Sigma     float64       // sigma=0.02: contention, instead of servers
	Kappa     float64       // kappa=0.0001: coherency, instead of servers
	Collapse  int           // collapse=500x20%: with more operations than that, and 0 never,
	Left      float64       // the share of the capacity that is left
	Noise     float64       // noise=3%: the capacity's spread from opening to opening
	Files     int           // files=100x1MiB: number
	Size      int64         // and their size
	// error=0.1% or error.reset=0.1%: the share of operations that fail, by class; without a class they are busy.
	Errors [storage.Classes]float64
	fixed  bool // the seed was given
}

// shares reports whether the service is shared by all operations, according to the Universal
// Scalability Law, instead of being a number of servers.
func (c Config) shares() bool { return c.Sigma > 0 || c.Kappa > 0 }

// depends reports whether the rate depends on the number of operations in another way than by the
// number of servers.
func (c Config) depends() bool { return c.shares() || c.Collapse > 0 }

// limits keep a typing mistake from filling the memory.
const (
	maxServers = 1 << 20
	maxFiles   = 1 << 20
)

// Parse reads a URL. Its errors name the wrong key and describe a valid value.
func Parse(u *url.URL) (Config, error) {
	c := Config{Servers: 4, Service: 10 * time.Millisecond, Seed: 1, Files: 100, Size: 1 << 20}
	if u == nil || u.Scheme != "simulated" || u.Host == "" {
		return c, errors.New("simulated: the target must be a URL such as simulated://name?servers=4&service=10ms")
	}
	if u.Path != "" && u.Path != "/" || u.User != nil || u.Fragment != "" {
		return c, fmt.Errorf("simulated: %s: after the name only ?key=value may follow", redact.URL(u.String()))
	}
	query, err := url.ParseQuery(percent(u.RawQuery))
	if err != nil {
		return c, fmt.Errorf("simulated: %w", err)
	}
	c.fixed = query.Has("seed")
	set := setters()
	for _, key := range slices.Sorted(maps.Keys(query)) {
		values := query[key]
		if len(values) != 1 {
			return c, fmt.Errorf("simulated: %s is given %d times", key, len(values))
		}
		err := errUnknown
		if name, isError := strings.CutPrefix(key, "error."); isError {
			err = c.setError(name, values[0])
		} else if set[key] != nil {
			err = set[key](&c, values[0])
		}
		if errors.Is(err, errUnknown) {
			return c, fmt.Errorf("simulated: unknown key %s: use %s or error.CLASS", key, strings.Join(slices.Sorted(maps.Keys(set)), ", "))
		}
		if err != nil {
			return c, fmt.Errorf("simulated: %s=%s: %w", key, values[0], err)
		}
	}
	switch {
	case c.shares() && query.Has("servers"):
		return c, errors.New("simulated: servers=: leave it out with sigma or kappa, which say how operations get into each other's way")
	case c.depends() && c.Constant:
		return c, errors.New("simulated: dist=constant: with sigma, kappa or collapse service times are exponential")
	case c.depends() && c.Service == 0:
		return c, errors.New("simulated: service=0: with sigma, kappa or collapse it must take time")
	}
	sum := 0.0
	for _, share := range c.Errors {
		sum += share
	}
	if sum > 1 {
		return c, fmt.Errorf("simulated: errors add up to %v%%: use 100%% at most", 100*sum)
	}
	return c, nil
}

// percent escapes percent signs that escape nothing, so that error=0.1% needs no %25.
func percent(query string) string {
	var b strings.Builder
	for i := range len(query) {
		b.WriteByte(query[i])
		if query[i] != '%' {
			continue
		}
		if _, err := url.QueryUnescape(query[i:min(i+3, len(query))]); err != nil {
			b.WriteString("25")
		}
	}
	return b.String()
}

var errUnknown = errors.New("unknown key")

func setters() map[string]func(c *Config, text string) error {
	return map[string]func(c *Config, text string) error{
		"servers": func(c *Config, text string) (err error) {
			c.Servers, err = count(text, maxServers)
			return err
		},
		"service": func(c *Config, text string) (err error) { c.Service, err = duration(text); return err },
		"connect": func(c *Config, text string) (err error) { c.Connect, err = duration(text); return err },
		"dist": func(c *Config, text string) error {
			c.Constant = text == "constant"
			if text != "constant" && text != "exponential" {
				return errors.New("use constant or exponential")
			}
			return nil
		},
		"bandwidth": func(c *Config, text string) error {
			b, err := unit.ParseBitrate(text)
			if err == nil && !(b >= 1000 && b <= 1e15) {
				err = errors.New("use 1kbit/s to 1000Tbit/s")
			}
			c.Bandwidth = float64(b) / 8
			return err
		},
		"seed": func(c *Config, text string) (err error) {
			c.Seed, err = strconv.ParseUint(text, 10, 64)
			return err
		},
		"error":    func(c *Config, text string) error { return c.setError("busy", text) },
		"files":    (*Config).setFiles,
		"sigma":    func(c *Config, text string) (err error) { c.Sigma, err = share(text, 1); return err },
		"kappa":    func(c *Config, text string) (err error) { c.Kappa, err = share(text, 1); return err },
		"noise":    func(c *Config, text string) (err error) { c.Noise, err = share(text, 0.5); return err },
		"collapse": (*Config).setCollapse,
	}
}

func (c *Config) setFiles(text string) (err error) {
	number, size, ok := strings.Cut(text, "x")
	if !ok {
		return errors.New("write a count and a size, such as 1000x1MiB")
	}
	if number != "0" {
		if c.Files, err = count(number, maxFiles); err != nil {
			return err
		}
	} else {
		c.Files = 0
	}
	s, err := unit.ParseSize(size)
	if err == nil && s < 0 {
		err = errors.New("a size cannot be negative")
	}
	c.Size = int64(s)
	return err
}

func (c *Config) setCollapse(text string) (err error) {
	number, left, ok := strings.Cut(text, "x")
	if !ok {
		return errors.New("write from how many operations on, and what share of the capacity is left then, such as 500x20%")
	}
	if c.Collapse, err = count(number, maxServers); err != nil {
		return err
	}
	if c.Left, err = share(left, 1); err == nil && c.Left == 0 {
		err = errors.New("something must be left: use more than 0%")
	}
	return err
}

// share reads a number from 0 to most, in percent or plain.
func share(text string, most float64) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if number, ok := strings.CutSuffix(text, "%"); ok {
		x, err = strconv.ParseFloat(number, 64)
		x /= 100
	}
	if err != nil || !(x >= 0 && x <= most) {
		return 0, fmt.Errorf("use a number from 0 to %g, such as 0.02 or 2%%", most)
	}
	return x, nil
}

func (c *Config) setError(name, text string) error {
	var class storage.Class
	err := class.UnmarshalText([]byte(strings.ReplaceAll(name, "-", " ")))
	if err == nil && (class == storage.None || class == storage.Canceled) {
		err = fmt.Errorf("no operation fails with class %s", class)
	}
	if err != nil {
		return err
	}
	share, err := unit.ParseFraction(text)
	if err == nil && !(share >= 0 && share <= 1) {
		err = errors.New("use 0% to 100%")
	}
	c.Errors[class] = float64(share)
	return err
}

func count(text string, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 1, fmt.Errorf("use a whole number from 1 to %d", most)
	}
	return n, nil
}

func duration(text string) (time.Duration, error) {
	d, err := unit.ParseDuration(text)
	if err == nil && (d < 0 || time.Duration(d) > math.MaxInt32*time.Second) {
		err = errors.New("use a duration such as 10ms")
	}
	return time.Duration(d), err
}
