package cli

import (
	"os"
	"os/user"
)

// Operator returns the user and the machine that run the command, such as "ada@laptop". It returns
// "" if neither is known.
func Operator() string {
	name := ""
	if of, err := user.Current(); err == nil {
		name = of.Username
	}
	host, err := os.Hostname()
	switch {
	case err != nil || host == "":
		return name
	case name == "":
		return host
	}
	return name + "@" + host
}
