package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/wire"
	"weir/transfer/client"
)

// coordFlags say which coordinator is asked.
type coordFlags struct {
	address, tokenFile string
	ca, cert, key      string
	json               bool
}

func (f *coordFlags) add(c *cobra.Command, prints string) {
	fs := c.Flags()
	fs.StringVar(&f.address, "coordinator", "", "`URL` of the coordinator, or URL#PIN (default WEIR_COORDINATOR, or the one of this user on this machine)")
	fs.StringVar(&f.tokenFile, "token-file", "", "show the token in `FILE` (default WEIR_TOKEN_FILE, or that of this user)")
	fs.StringVar(&f.ca, "coordinator-ca", "", "PEM `FILE` of the authorities of the coordinator's certificate (default those of the system)")
	fs.StringVar(&f.cert, "client-cert", "", "show the coordinator this certificate, a PEM `FILE`, instead of a token")
	fs.StringVar(&f.key, "client-key", "", "its key, a PEM `FILE`")
	if prints != "" {
		jsonFlag(c, &f.json, prints)
	}
}

// A desk is the coordinator as a command asks it.
type desk struct {
	*client.Client
	at, pin string // its URL and certificate
}

// name is how others name the coordinator.
func (d *desk) name() string { return address(d.at, d.pin) }

// open finds the coordinator. The caller closes it.
func (f *coordFlags) open() (*desk, error) {
	conf, err := f.find()
	if err != nil {
		return nil, err
	}
	c, err := client.New(conf)
	if err != nil {
		return nil, err
	}
	return &desk{Client: c, at: conf.URLs[0], pin: conf.Pin}, nil
}

// find is where the coordinator is, and who asks.
func (f *coordFlags) find() (client.Config, error) {
	conf, err := client.Find(f.address, f.tokenFile)
	switch {
	case err != nil:
		return conf, err
	case (f.cert == "") != (f.key == ""):
		return conf, exit{exitUsage, errors.New("--client-cert and --client-key belong together")}
	case f.ca != "":
		conf.CAFile = f.ca
	}
	if f.cert != "" {
		conf.CertFile, conf.KeyFile = f.cert, f.key
		if f.tokenFile == "" {
			conf.Token = "" // a token would count more
		}
	}
	return conf, nil
}

// with calls do with the coordinator, and says of what fails who said so.
func (f *coordFlags) with(do func(*desk) error) error {
	d, err := f.open()
	if err != nil {
		return err
	}
	defer d.Close()
	return d.explain(do(d))
}

// explain says what would be right where a coordinator refuses or is not there.
func (d *desk) explain(err error) error {
	var told exit
	var refused *wire.Error
	switch {
	case err == nil || errors.As(err, &told) || errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, wire.ErrPin):
		return fmt.Errorf("coordinator %s: %w", d.at, err)
	case errors.As(err, &refused):
		switch refused.Status {
		case http.StatusUnauthorized:
			return fmt.Errorf("the coordinator at %s does not take this token: %w (name another one with --token-file; its administrator makes one with `weir coordinator token`)", d.at, err)
		case http.StatusServiceUnavailable:
			return fmt.Errorf("the coordinator at %s is busy: %w: try again in a moment", d.at, err)
		}
		return err
	case isNetwork(err):
		return fmt.Errorf("the coordinator at %s does not answer: %w (start it with `weir coordinator`, or name another one with --coordinator)", d.at, err)
	}
	return err
}

// again asks until there is an answer, for a quarter of a minute: while the
// coordinator starts, or is busy. What is asked must be harmless to repeat. It
// fails at once if it was not there to begin with.
func again[T any](ctx context.Context, wasThere bool, ask func() (T, error)) (T, error) {
	const patience = 15 * time.Second
	for begin := time.Now(); ; wasThere = true {
		v, err := ask()
		busy := isNetwork(err) || errors.Is(err, client.ErrCut) || wire.Status(err) == http.StatusServiceUnavailable || wire.Status(err) == http.StatusTooManyRequests
		if !busy || !wasThere && errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, wire.ErrPin) || time.Since(begin) > patience {
			return v, err
		}
		select {
		case <-ctx.Done():
			return v, err
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// isNetwork tells whether nobody answered at all.
func isNetwork(err error) bool {
	var asked *url.Error
	return err != nil && errors.As(err, &asked) && wire.Status(err) == 0 && !errors.Is(err, context.Canceled)
}
