package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weir/internal/durable"
	"weir/internal/say"
	"weir/internal/wire"
)

// File returns the path of the file with the address and the token of the user's coordinator:
// $WEIR_CONFIG, or weir/coordinator.json in the user's configuration folder.
func File() (string, error) {
	if f := os.Getenv("WEIR_CONFIG"); f != "" {
		return f, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("where is the coordinator? Say --coordinator URL: %w", err)
	}
	return filepath.Join(dir, "weir", "coordinator.json"), nil
}

// Save writes a Config for all of this user's commands on this machine. Other users cannot read it.
func (c Config) Save(path string) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return durable.Write(path, append(text, '\n'), 0o600)
}

// Find combines the sources of the configuration: the arguments address (URL, or URL#PIN, or
// several URLs with commas if the coordinator has a standby) and tokenFile, else WEIR_COORDINATOR
// and WEIR_TOKEN_FILE, else the user's file. If the address belongs to another coordinator than the
// file's, neither the pin nor the token of the file is used.
func Find(address, tokenFile string) (Config, error) {
	address = cmp.Or(address, os.Getenv("WEIR_COORDINATOR"))
	tokenFile = cmp.Or(tokenFile, os.Getenv("WEIR_TOKEN_FILE"))
	c, err := kept()
	if err != nil {
		return Config{}, err
	}
	if address != "" {
		list, pin, _ := strings.Cut(address, "#")
		urls := strings.Split(list, ",")
		for i, u := range urls {
			urls[i] = strings.TrimSuffix(strings.TrimSpace(u), "/")
		}
		if len(c.URLs) == 0 || c.URLs[0] != urls[0] || pin != "" && pin != c.Pin {
			c = Config{Pin: pin}
		}
		c.URLs = urls
	}
	if len(c.URLs) == 0 {
		return Config{}, errors.New("no coordinator is known: start one with `weir coordinator`, or say where it is with --coordinator URL#PIN " +
			"or WEIR_COORDINATOR")
	}
	if tokenFile != "" {
		text, err := os.ReadFile(tokenFile)
		if err != nil {
			return Config{}, fmt.Errorf("the token: %w", err)
		}
		c.Token = strings.TrimSpace(string(text))
	}
	return c, nil
}

func kept() (Config, error) {
	path, err := File()
	if err != nil {
		return Config{}, nil
	}
	c, err := Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	return c, err
}

// Read reads a Config that Save has written.
func Read(path string) (Config, error) {
	var c Config
	text, err := os.ReadFile(path)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Claim makes this coordinator the default of the commands and agents of this user on this machine,
// by writing it into the file that File returns. The file stays unchanged if it contains a
// coordinator of another machine, or another coordinator that responds. note is information for the
// user, or "".
func (c Config) Claim(ctx context.Context) (note string) {
	path, err := File()
	if err == nil {
		note, err = c.claim(ctx, path)
	}
	if err != nil {
		return "commands on this machine do not find the coordinator by themselves: " + err.Error()
	}
	return note
}

func (c Config) claim(ctx context.Context, path string) (note string, err error) {
	known, err := Read(path)
	if err != nil || len(known.URLs) == 0 || known.URLs[0] == c.URLs[0] {
		return "", c.Save(path)
	}
	other := say.Plain(known.URLs[0])
	switch {
	case !onThisMachine(known.URLs[0]):
		return path + " names another coordinator, " + other + ", and is not changed: use --coordinator and --token-file for this one", nil
	case known.Pin == c.Pin && c.Pin != "":
		return "", c.Save(path)
	case answers(ctx, known):
		return "commands of this user use another coordinator, which runs at " + other + "\n" +
			"weir: start this one, and the commands for it, with a file of its own in the environment: WEIR_CONFIG=FILE", nil
	}
	return "commands of this user now use this coordinator: the one at " + other + " does not answer any more", c.Save(path)
}

// answers reports whether a coordinator runs at an address. A coordinator that accepts a connection
// but responds slowly counts as running.
func answers(ctx context.Context, conf Config) bool {
	conf.Wait = 3 * time.Second
	c, err := New(conf)
	if err != nil {
		return false
	}
	defer c.Close()
	_, err = c.Sites(ctx)
	var slow net.Error
	return err == nil || wire.Status(err) != 0 || errors.As(err, &slow) && slow.Timeout()
}

// onThisMachine reports whether the host of a URL is this machine.
func onThisMachine(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := u.Hostname()
	name, _ := os.Hostname() // if it fails, no name matches
	return host != "" && host == name || host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}
