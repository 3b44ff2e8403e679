package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"weir/internal/db"
	"weir/internal/flagfile"
	"weir/internal/trust"
	"weir/loadtest/run"
	"weir/storage"
	"weir/transfer/client"
)

// clientFlags name the coordinator of a command, and the credentials.
type clientFlags struct {
	address, tokenFile string
	ca, cert, key      string
	json               bool
}

// add adds all flags but --json.
func (f *clientFlags) add(c *cobra.Command) {
	flagVars{
		"coordinator": &f.address, "token-file": &f.tokenFile, "coordinator-ca": &f.ca, "client-cert": &f.cert, "client-key": &f.key,
	}.add(c)
}

// check checks the address and the files of the flags.
func (f *clientFlags) check() error {
	file, from := f.tokenFile, "--token-file"
	if file == "" {
		file, from = os.Getenv("WEIR_TOKEN_FILE"), "WEIR_TOKEN_FILE"
	}
	token, err := fileText(file)
	return flagfile.All(
		flagfile.Wrap("coordinator", client.CheckAddress(f.address)),
		flagfile.If(err != nil, "token-file", "%s: %w", from, err),
		flagfile.If(err == nil && file != "" && token == "", "token-file", "%s: %s is empty", from, line(file)),
		checkAuthorities("coordinator-ca", f.ca),
		flagfile.Pair("client-cert", f.cert, "client-key", f.key))
}

// checkAuthorities returns an error if the PEM file of authorities that a flag names, if it names one, cannot be read.
func checkAuthorities(flag, path string) error {
	if path == "" {
		return nil
	}
	return flagfile.Wrap(flag, errorOf(trust.Authorities(path)))
}

// errorOf returns the error of a call that is only a check.
func errorOf[T any](_ T, err error) error { return err }

// config finds the coordinator and the credentials.
func (f *clientFlags) config() (client.Config, error) {
	if err := f.check(); err != nil {
		return client.Config{}, usage(err)
	}
	conf, err := client.Find(f.address, f.tokenFile)
	if err != nil {
		return conf, err
	}
	if f.ca != "" {
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

// call calls do with a client of the coordinator. Its errors contain advice on reaching the
// coordinator.
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

// clientCommand returns a command that calls do with a client of the coordinator.
func clientCommand(use string, args cobra.PositionalArgs,
	do func(ctx context.Context, co *client.Client, args []string, asJSON bool) error) *cobra.Command {
	var f clientFlags
	c := command(use, args, func(c *cobra.Command, args []string) error {
		return f.call(func(co *client.Client) error { return do(c.Context(), co, args, f.json) })
	})
	f.add(c)
	flagVars{"json": &f.json}.add(c)
	return c
}

// queryCommand returns a command that queries the coordinator and prints the result: as JSON with
// --json, otherwise with show.
func queryCommand[T any](s streams, use string, args cobra.PositionalArgs,
	query func(context.Context, *client.Client, []string) (T, error), show func(io.Writer, T) error) *cobra.Command {
	return clientCommand(use, args, func(ctx context.Context, co *client.Client, args []string, asJSON bool) error {
		answer, err := query(ctx, co, args)
		switch {
		case err != nil:
			return err
		case asJSON:
			return writeJSON(s.out, answer)
		}
		return show(s.out, answer)
	})
}

// listCommand is queryCommand for a list, which has the given name in JSON.
func listCommand[T any](s streams, name, use string, args cobra.PositionalArgs,
	query func(context.Context, *client.Client, []string) ([]T, error), show func(io.Writer, []T) error) *cobra.Command {
	list := func(ctx context.Context, co *client.Client, args []string) (map[string][]T, error) {
		all, err := query(ctx, co, args)
		return map[string][]T{name: append([]T{}, all...)}, err
	}
	return queryCommand(s, use, args, list, func(w io.Writer, m map[string][]T) error { return show(w, m[name]) })
}

// eachCommand returns a command that calls do with each argument. done describes the result of an
// argument.
func eachCommand[T any](s streams, name, use string, args cobra.PositionalArgs,
	do func(*client.Client, context.Context, string) (T, error), done func(T) string) *cobra.Command {
	each := func(ctx context.Context, co *client.Client, args []string, asJSON bool) error {
		var all []T
		for _, arg := range args {
			one, err := do(co, ctx, arg)
			if err == nil && !asJSON {
				_, err = fmt.Fprintln(s.out, done(one))
			}
			if err != nil {
				return err
			}
			all = append(all, one)
		}
		if asJSON {
			return writeJSON(s.out, map[string]any{name: all})
		}
		return nil
	}
	return clientCommand(use, args, each)
}

// removed is the JSON output of commands that remove something.
type removed struct {
	Name string `json:"removed"`
}

// withAdvice adds advice for the user to an error of the coordinator at url.
func withAdvice(url string, err error) error {
	if errors.As(err, new(exit)) || errors.As(err, new(*run.Explained)) || errors.As(err, new(*storage.OpError)) { // of a storage service
		return err
	}
	return client.Advise(url, err)
}

// dbFlags name a database. An address that holds a password should come from a file or the
// environment, which other users cannot read.
type dbFlags struct {
	flag, env     string // name of the flag, and of the variable with its default, or ""
	address, file string
}

func (f *dbFlags) add(c *cobra.Command, flag, env string) {
	f.flag, f.env = flag, env
	flagVars{flag: &f.address, flag + "-file": &f.file}.add(c)
}

// find returns the address, "" if no database is named. It warns of a password that other users of
// this machine can see.
func (f *dbFlags) find(s streams) (string, error) {
	if f.address != "" && db.Public(f.address) != f.address {
		s.printErr("weir: all users of this machine can see the password in --%s, with ps: use --%s-file FILE, PGPASSWORD or ~/.pgpass\n",
			f.flag, f.flag)
	}
	address, err := f.read()
	return address, usage(err)
}

// read returns the address, "" if no database is named.
func (f *dbFlags) read() (string, error) {
	file := f.flag + "-file"
	text, err := fileText(f.file)
	unusable := text == "" || strings.ContainsAny(text, "\r\n") || len(text) > 4096
	address := cmp.Or(f.address, text, os.Getenv(f.env))
	err = flagfile.All(
		flagfile.If(f.address != "" && f.file != "", file+" "+f.flag, "--%s and --%s: choose one", file, f.flag),
		flagfile.Wrap(file, err),
		flagfile.If(f.file != "" && err == nil && unusable, file,
			"--%s %s: one line with the address of a database is expected", file, line(f.file)),
		flagfile.Wrap(f.flag, db.CheckAddress(address)))
	if err != nil {
		return "", err
	}
	return address, nil
}
