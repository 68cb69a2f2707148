package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir"
)

// expired is --expired: what becomes of a checkpoint that the service refuses.
type expired string

var expiredPolicies = []expired{"fail", "oldest", "latest"}

func (e *expired) String() string { return string(*e) }
func (e *expired) Type() string   { return "fail|oldest|latest" }

func (e *expired) Set(s string) error {
	if !slices.Contains(expiredPolicies, expired(s)) {
		return fmt.Errorf("%.40q is no place to go on: use fail, oldest or latest", s)
	}
	*e = expired(s)
	return nil
}

func (e *expired) register(cmd *cobra.Command) {
	*e = expiredPolicies[0]
	cmd.Flags().Var(e, "expired", "where a shard goes on whose checkpoint the service refuses, because its records have left the stream: fail stays there and says so")
	mustComplete(cmd, "expired", "fail\tthe shard stays where it is, until somebody decides", "oldest\twith the oldest record there is", "latest\twith what arrives from then on")
}

func (e expired) policy() weir.ExpiredPolicy {
	return map[expired]weir.ExpiredPolicy{"oldest": weir.OldestExpired, "latest": weir.LatestExpired}[e]
}
