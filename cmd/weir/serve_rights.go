package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"weir/internal/token"
	"weir/internal/tpc"
	"weir/internal/trust"
	"weir/internal/unit"
	"weir/serve"
	"weir/transfer/endpoint"
)

// rightsFlags say who is let in to do what, and with which servers a server copies.
type rightsFlags struct {
	issuers, audiences []string
	issuerKeys         string
	third              bool
	guard              tpc.Guard
	authorities        string
	pins               []string
	most               int
	maxFile            string
}

func (f *rightsFlags) add(c *cobra.Command, conf *serve.Config) {
	fs := c.Flags()
	fs.StringArrayVar(&f.issuers, "issuer", nil, "take tokens of this issuer (`URL`), WLCG profile: what they may do is in their scopes; may be repeated")
	fs.StringVar(&f.issuerKeys, "issuer-keys", "", "`FILE` with the issuer's keys (JWKS); without it they are fetched from the issuer")
	fs.StringArrayVar(&f.audiences, "audience", nil, "what tokens call this server, such as `https://HOST:PORT`; may be repeated")
	fs.StringVar(&conf.ClientCA, "client-ca", "", "let in clients with certificates of these authorities, a PEM `FILE`, whose names --client lists")
	fs.StringArrayVar(&conf.Clients, "client", nil, "common name, DNS name or whole subject of a client's certificate, as in `ada`; may be repeated")
	fs.StringVar(&f.maxFile, "max-file", "", "take no file of more than this `SIZE`, as in 100GB")
	fs.BoolVar(&f.third, "third-party", false, "copy files from and to other servers when a client asks (COPY, HTTP-TPC)")
	fs.StringSliceVar(&f.guard.Hosts, "tpc-allow", nil, "the servers to copy with: `HOST`, HOST:PORT, *.DOMAIN or *; several with commas")
	fs.BoolVar(&f.guard.Private, "tpc-private", false, "copy also with addresses of this machine and of private networks")
	fs.BoolVar(&f.guard.Encrypted, "tpc-encrypted", false, "copy over https only")
	fs.StringVar(&f.authorities, "tpc-ca", "", "authorities of those servers, a PEM `FILE`; without it the system's")
	fs.StringSliceVar(&f.pins, "tpc-pin", nil, "know such a server by its certificate, whoever signed it: `HOST:PORT=SHA256`; several with commas")
	fs.IntVar(&f.most, "tpc-most", 0, "copy at most `N` files at once; 0: 100")
}

// set completes a Config. Mistakes are told by the names of the flags.
func (f *rightsFlags) set(conf *serve.Config) (err error) {
	if conf.MaxFile, err = maxFile(f.maxFile); err != nil {
		return err
	}
	switch {
	case len(f.issuers) == 0 && (len(f.audiences) > 0 || f.issuerKeys != ""):
		return errors.New("--audience and --issuer-keys are about tokens: name their --issuer, too")
	case len(f.issuers) > 0 && len(f.audiences) == 0:
		return errors.New("--issuer needs --audience: what tokens call this server, such as https://HOST:PORT")
	case len(f.issuers) > 1 && f.issuerKeys != "":
		return errors.New("--issuer-keys are those of one --issuer, not of several")
	case (conf.ClientCA == "") != (len(conf.Clients) == 0):
		return errors.New("--client-ca and --client belong together")
	case !f.third && (len(f.guard.Hosts) > 0 || f.guard.Private || f.guard.Encrypted || f.authorities != "" || len(f.pins) > 0 || f.most != 0):
		return errors.New("--tpc-... are about third-party copies: add --third-party")
	case f.third && len(f.guard.Hosts) == 0:
		return errors.New("--third-party needs --tpc-allow: the servers to copy with, or * for all")
	case f.most < 0:
		return fmt.Errorf("--tpc-most: %d: name a number of copies, or 0 for 100", f.most)
	}
	if len(f.issuers) > 0 {
		if err := f.trust(conf); err != nil {
			return err
		}
	}
	if !f.third {
		return nil
	}
	o := endpoint.CopyOptions{Guard: f.guard, Most: f.most}
	if o.Pins, err = trust.ReadPins(f.pins); err != nil {
		return fmt.Errorf("--tpc-pin: %w", err)
	}
	if f.authorities != "" {
		pool, err := trust.Authorities(f.authorities)
		if err != nil {
			return fmt.Errorf("--tpc-ca: %w", err)
		}
		o.TLS = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	conf.Extensions = append(conf.Extensions, endpoint.NewCopier(o))
	return nil
}

// maxFile reads the option --max-file of servers and agents.
func maxFile(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	size, err := unit.ParseSize(text)
	if err == nil && size < 1 {
		err = errors.New("name a size above 0, or leave it out")
	}
	if err != nil {
		return 0, fmt.Errorf("--max-file: %w", err)
	}
	return int64(size), nil
}

// trust has tokens of the issuers checked.
func (f *rightsFlags) trust(conf *serve.Config) error {
	o := token.Options{Audience: f.audiences}
	for _, i := range f.issuers {
		t := token.Trust{Issuer: i}
		if f.issuerKeys != "" {
			keys, err := os.ReadFile(f.issuerKeys)
			if err != nil {
				return fmt.Errorf("--issuer-keys: %w", err)
			}
			t.Keys = keys
		}
		o.Trust = append(o.Trust, t)
	}
	checker, err := token.NewChecker(o)
	if err != nil {
		return fmt.Errorf("--issuer: %w", err)
	}
	conf.Authenticate = endpoint.Bearer(checker)
	return nil
}
