package token

import "slices"

// Roles returns the scopes that are roles of weir (they begin with "weir."), if
// the issuer is trusted to give them.
func (c *Claims) Roles() []string {
	if !c.roles {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.words), func(w string) bool { return !isRole(w) })
}
