package main

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// ofWorker are the variables with which a worker shows who it is, to AWS and to its store. A
// command of --exec has no need of them as a rule, and handles what strangers put into a stream.
var ofWorker = []string{
	"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE",
	"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN",
	"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", storeVariable, letterVariable,
}

func registerExecCredentials(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "exec-credentials", false, "let the command have the worker's AWS credentials, "+storeVariable+" and "+letterVariable+", which are kept from it otherwise")
}

// environment is what a command finds, beside what weir says of its records.
func environment(credentials bool) []string {
	all := os.Environ()
	if credentials {
		return all
	}
	return slices.DeleteFunc(all, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.ContainsFunc(ofWorker, func(kept string) bool { return strings.EqualFold(kept, name) })
	})
}
