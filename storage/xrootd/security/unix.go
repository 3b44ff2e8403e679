package security

import (
	"context"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
)

// Unix names the user to the server, which believes it. "" means the user
// and group that weir runs as; another name goes without a group.
func Unix(name string) Method {
	if name != "" {
		return unixMethod(name)
	}
	name = "*" // what the reference says of a user without a name
	if u, err := user.LookupId(strconv.Itoa(os.Geteuid())); err == nil {
		name = u.Username
	} else if said := id("-un"); said != "" {
		name = said
	}
	if g, err := user.LookupGroupId(strconv.Itoa(os.Getegid())); err == nil {
		name += " " + g.Name
	} else if said := id("-gn"); said != "" {
		name += " " + said
	}
	return unixMethod(name)
}

// id asks the program of that name, which knows users and groups that are not in
// the files of this machine but in a directory of the site; "" if they have no name.
func id(what string) string {
	said, err := exec.Command("id", what).Output() //nolint:noctx // it asks this machine, once for a target
	name := strings.TrimSpace(string(said))
	if _, number := strconv.Atoi(name); err != nil || number == nil || strings.ContainsAny(name, " \x00\n") {
		return ""
	}
	return name
}

// unixMethod is the name, perhaps with a space and the group.
type unixMethod string

func (unixMethod) Name() string { return "unix" }

func (u unixMethod) Begin(context.Context, Server) (Exchange, error) {
	message := append([]byte("unix\x00"), u...)
	return &said{message: append(message, 0)}, nil
}
