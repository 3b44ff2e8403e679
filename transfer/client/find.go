package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// File returns where a user keeps which coordinator is asked and with what token:
// $WEIR_CONFIG, or weir/coordinator.json in the user's folder of configurations.
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

// Save writes a Config for all of this user's commands on this machine. Nobody
// else may read it.
func (c Config) Save(path string) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	draft, err := os.CreateTemp(filepath.Dir(path), ".coordinator-*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = draft.Write(append(text, '\n'))
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		_ = os.Remove(draft.Name())
	}
	return err
}

// Find puts together what is known: address (URL, or URL#PIN) and tokenFile as
// they were given, else WEIR_COORDINATOR and WEIR_TOKEN_FILE, else the user's
// file. What was given for another coordinator than the file's takes neither pin
// nor token from it.
func Find(address, tokenFile string) (Config, error) {
	if address == "" {
		address = os.Getenv("WEIR_COORDINATOR")
	}
	if tokenFile == "" {
		tokenFile = os.Getenv("WEIR_TOKEN_FILE")
	}
	c, err := kept()
	if err != nil {
		return Config{}, err
	}
	if address != "" {
		url, pin, _ := strings.Cut(address, "#")
		url = strings.TrimSuffix(url, "/")
		if len(c.URLs) == 0 || c.URLs[0] != url || pin != "" && pin != c.Pin {
			c = Config{Pin: pin}
		}
		c.URLs = []string{url}
	}
	if len(c.URLs) == 0 {
		return Config{}, errors.New("no coordinator is known: start one with `weir coordinator`, or say where it is with --coordinator URL#PIN or WEIR_COORDINATOR")
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
		return Config{}, nil //nolint:nilerr // no home: nothing is kept
	}
	c, err := Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	return c, err
}

// Read returns what Save has written.
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
