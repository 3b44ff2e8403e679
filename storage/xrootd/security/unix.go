package security

import (
	"context"
	"os"
	"os/user"
	"strconv"
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
	}
	if g, err := user.LookupGroupId(strconv.Itoa(os.Getegid())); err == nil {
		name += " " + g.Name
	}
	return unixMethod(name)
}

// unixMethod is the name, perhaps with a space and the group.
type unixMethod string

func (unixMethod) Name() string { return "unix" }

func (u unixMethod) Begin(context.Context, Server) (Exchange, error) {
	message := append([]byte("unix\x00"), u...)
	return &said{message: append(message, 0)}, nil
}
