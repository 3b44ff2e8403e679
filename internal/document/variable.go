package document

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"weir/internal/say"
)

// VariablePattern is the regular expression of the names of variables.
const VariablePattern = `^[A-Za-z_][A-Za-z0-9_]*$`

// variables fills ${NAME} and ${NAME:-default} in the values of a file. Values come from --var,
// then, for names that the file lists as null, from the environment, then from the file, then from
// the default in place.
type variables struct {
	*Reader
	name   *regexp.Regexp
	given  map[string]string // --var
	listed map[string]*Node  // the block variables
	used   map[string]bool
}

// Fill removes the block variables from root and fills in all other values. given are the --var
// options of the command line.
func (t *Reader) Fill(root *Node, given map[string]string) {
	v := &variables{Reader: t, name: regexp.MustCompile(VariablePattern), given: given, listed: map[string]*Node{}, used: map[string]bool{}}
	v.list(root)
	v.walk(root)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := v.listed[name]; !ok && !v.used[name] {
			v.Mistakes = append(v.Mistakes, &Mistake{
				Text: "--var " + name + ": the " + t.format.Noun + " has no such variable" + meantOr(name, v.names())})
		}
	}
}

func meantOr(name string, known []string) string {
	if len(known) == 0 {
		return "; it has none"
	}
	return Meant(name, known)
}

func (v *variables) names() []string {
	return slices.Sorted(maps.Keys(v.listed))
}

func (v *variables) list(root *Node) {
	block := root.Get("variables")
	if block == nil {
		return
	}
	root.Entries = slices.DeleteFunc(root.Entries, func(e Entry) bool { return e.Key == "variables" })
	if block.Kind != Map {
		v.Say(block.At, "variables: %s; write names and values, as in {SIZE: 1MiB}", block.Describe())
		return
	}
	for _, e := range block.Entries {
		switch {
		case !v.name.MatchString(e.Key):
			v.Say(e.At, "variables: %s is not a name; use letters, digits and _", Quote(e.Key))
		case v.secret(e.Key):
			v.Say(e.At, "variables.%s: %s", e.Key, v.noSecrets())
		case e.Value.Kind == List || e.Value.Kind == Map:
			v.Say(e.Value.At, "variables.%s: %s; write one value", e.Key, e.Value.Describe())
		case e.Value.Kind == Scalar && strings.Contains(e.Value.Text, "${"):
			v.Say(e.Value.At, "variables.%s: %s; a variable cannot refer to others", e.Key, Quote(e.Value.Text))
		}
		v.listed[e.Key] = e.Value
	}
}

func (v *variables) walk(n *Node) {
	for _, i := range n.Items {
		v.walk(i)
	}
	for _, e := range n.Entries {
		v.walk(e.Value)
	}
	if n.Kind == Scalar && strings.Contains(n.Text, "${") {
		n.Text = v.expand(n)
	}
}

// expand returns n's text with its variables filled in; $${ represents ${.
func (v *variables) expand(n *Node) string {
	var b strings.Builder
	rest := n.Text
	for {
		i := strings.Index(rest, "${")
		if i < 0 {
			break
		}
		if i > 0 && rest[i-1] == '$' {
			b.WriteString(rest[:i-1] + "${")
			rest = rest[i+2:]
			continue
		}
		name, after, closed := strings.Cut(rest[i+2:], "}")
		if !closed {
			v.Say(n.At, "%s: the variable is not closed by }; write $${ for a literal ${", Quote(n.Text))
			break
		}
		b.WriteString(rest[:i])
		b.WriteString(v.value(n, name))
		rest = after
		if b.Len() > MaxBytes {
			v.Say(n.At, "too long with its variables filled in")
			return ""
		}
	}
	b.WriteString(rest)
	return b.String()
}

func (v *variables) value(n *Node, ref string) string {
	name, fallback, optional := strings.Cut(ref, ":-")
	if !v.name.MatchString(name) {
		v.Say(n.At, "%s is not a variable; write ${NAME} or ${NAME:-default}", Quote("${"+ref+"}"))
		return ""
	}
	v.used[name] = true
	if _, listed := v.listed[name]; v.secret(name) && !listed {
		v.Say(n.At, "${%s}: %s", name, v.noSecrets())
		return ""
	}
	if text, ok := v.given[name]; ok {
		n.At.Outside = true
		return text
	}
	value, listed := v.listed[name]
	if listed && value.Kind == Null {
		if text, ok := os.LookupEnv(name); ok {
			n.At.Outside = true
			return text
		}
	}
	switch {
	case listed && value.Kind == Scalar:
		return value.Text
	case optional:
		return fallback
	case listed:
		v.Say(n.At, "variable %s has no value; give --var %s=..., or set it in the environment", name, name)
	default:
		v.Say(n.At, "there is no variable %s%s", name, listHint(name, v.names()))
	}
	return ""
}

// noSecrets returns the message for a variable with the name of a secret.
func (v *variables) noSecrets() string {
	return "a " + v.format.Noun + " must not contain secrets, not even in variables; name the variable with auth.password_variable or " +
		"auth.token_variable"
}

// secret reports whether the name of a variable is typical of a secret.
func (v *variables) secret(name string) bool {
	name = strings.ToLower(name)
	if _, ok := SecretKeys()[name]; ok {
		return true
	}
	return slices.ContainsFunc([]string{"_password", "_passwd", "_secret", "_secret_key", "_access_key", "_token", "_api_key"},
		func(end string) bool {
			return strings.HasSuffix(name, end)
		})
}

// SecretKeys returns the names of keys that would contain a secret, and the advice for each.
func SecretKeys() map[string]string {
	password := "name where it is kept with auth.password_file or auth.password_variable"
	token := "name where it is kept with auth.token_file or auth.token_variable"
	return map[string]string{
		"password": password, "passwd": password, "pass": password, "passphrase": password, "secret": password, "secret_key": password,
		"secret_access_key": password, "access_key": "write it as auth.user, and name where the secret key is kept with auth.password_file or " +
			"auth.password_variable",
		"token": token, "bearer": token, "bearer_token": token, "authorization": token, "api_key": token,
		"private_key": "name its file with auth.key_file",
	}
}

func listHint(name string, known []string) string {
	if say.Nearest(name, known) != "" {
		return Meant(name, known)
	}
	return "; list it under variables, or write ${" + name + ":-default}"
}
