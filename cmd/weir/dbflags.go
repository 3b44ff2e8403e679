package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"weir/internal/db"
)

// dbFlags say which database is used. Its address may hold a password: then it is
// to come from a file or the environment, which only this user can read.
type dbFlags struct {
	flag, env     string // the flag's name; the variable that counts where nothing is said, or ""
	address, file string
}

func (f *dbFlags) add(fs *pflag.FlagSet, flag, env, about string) {
	f.flag, f.env = flag, env
	fs.StringVar(&f.address, flag, "", about)
	where := ""
	if env != "" {
		where = " (or set " + env + " to it)"
	}
	fs.StringVar(&f.file, flag+"-file", "", "read --"+flag+" from `FILE`: for an address with a password in it"+where)
}

// find returns the address, "" if none is named. A password that everybody on this
// machine can see is warned of.
func (f *dbFlags) find(s streams) (string, error) {
	switch {
	case f.address != "" && f.file != "":
		return "", exit{exitUsage, fmt.Errorf("--%s and --%s-file: choose one", f.flag, f.flag)}
	case f.address != "":
		if db.Public(f.address) != f.address {
			s.tell("weir: everybody on this machine can see the password in --%s, with ps: use --%s-file FILE, PGPASSWORD or ~/.pgpass\n", f.flag, f.flag)
		}
		return f.address, nil
	case f.file == "" && f.env != "":
		return os.Getenv(f.env), nil
	case f.file == "":
		return "", nil
	}
	text, err := os.ReadFile(f.file)
	if err != nil {
		return "", fmt.Errorf("--%s-file: %w", f.flag, err)
	}
	address := strings.TrimSpace(string(text))
	if address == "" || strings.ContainsAny(address, "\r\n") || len(address) > 4096 {
		return "", fmt.Errorf("--%s-file %s: one line with the address of a database is expected", f.flag, line(f.file))
	}
	return address, nil
}
