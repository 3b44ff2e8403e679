package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"weir/internal/trust"
	"weir/internal/wire"
	"weir/transfer/client"
)

// clientFlags name the coordinator that a command asks, and the credentials.
type clientFlags struct {
	address, tokenFile string
	ca, cert, key      string
	json               bool
}

// add adds the flags to c, with --json if prints says what that prints.
func (f *clientFlags) add(c *cobra.Command, prints string) {
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

// config finds the coordinator and the credentials.
func (f *clientFlags) config() (client.Config, error) {
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
			conf.Token = "" // it would take precedence over the certificate
		}
	}
	return conf, nil
}

// call calls do with a client of the coordinator. Errors say how to reach it.
func (f *clientFlags) call(do func(*client.Client) error) error {
	conf, err := f.config()
	if err != nil {
		return err
	}
	co, err := client.New(conf)
	if err != nil {
		return err
	}
	defer co.Close()
	return withAdvice(co.URL(), do(co))
}

// ask prints what the coordinator answers: as JSON with --json, else with show.
func ask[T any](f *clientFlags, s streams, query func(*client.Client) (T, error), show func(io.Writer, T) error) error {
	return f.call(func(co *client.Client) error {
		answer, err := query(co)
		switch {
		case err != nil:
			return err
		case f.json:
			return writeJSON(s.out, answer)
		}
		return show(s.out, answer)
	})
}

// askList is ask for a list, which is called name in JSON.
func askList[T any](f *clientFlags, s streams, name string, query func(*client.Client) ([]T, error), show func(io.Writer, []T) error) error {
	return f.call(func(co *client.Client) error {
		all, err := query(co)
		if err != nil {
			return err
		}
		return printList(s.out, f.json, name, all, show)
	})
}

// withAdvice adds to an error of the coordinator at url what the user can do.
func withAdvice(url string, err error) error {
	var told exit
	switch {
	case err == nil || errors.As(err, &told) || errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, trust.ErrPin):
		return fmt.Errorf("coordinator %s: %w", url, err)
	case wire.Status(err) == http.StatusUnauthorized:
		return fmt.Errorf("the coordinator at %s does not take this token: %w (name another one with --token-file; its administrator makes one with `weir coordinator token`)", url, err)
	case wire.Status(err) == http.StatusServiceUnavailable:
		return fmt.Errorf("the coordinator at %s is busy: %w: try again in a moment", url, err)
	case client.Unreachable(err):
		return fmt.Errorf("the coordinator at %s does not answer: %w (start it with `weir coordinator`, or name another one with --coordinator)", url, err)
	}
	return err
}
