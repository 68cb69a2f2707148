package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// unknownFlag is the error about a flag that the command does not have, with those that may have
// been meant.
func unknownFlag(cmd *cobra.Command, err *pflag.NotExistError) error {
	name := err.GetSpecifiedName()
	if short := err.GetSpecifiedShortnames(); len(short) > 1 { // "-stream" with one dash
		name = short
	}
	name, _, _ = strings.Cut(name, "=")
	if like := flagsLike(cmd, name); len(like) > 0 {
		return fmt.Errorf("%w: is it %s?", err, strings.Join(like, " or "))
	}
	return err
}

// flagsLike are the flags of a command that are spelt much like name, the most alike first.
func flagsLike(cmd *cobra.Command, name string) (like []string) {
	if len(name) > 40 {
		return nil // no flag is so long
	}
	least := 1
	if len(name) > 4 {
		least = 2
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		switch d := edits(name, f.Name); {
		case f.Hidden || d > least:
		case d < least:
			like, least = []string{"--" + f.Name}, d
		default:
			like = append(like, "--"+f.Name)
		}
	})
	slices.Sort(like)
	return like
}

// edits is how many letters have to be put in, left out, replaced or swapped with the next to make
// b of a.
func edits(a, b string) int {
	before, last := []int(nil), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now := make([]int, len(b)+1)
		now[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := last[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			now[j] = min(last[j]+1, now[j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last = last, now
	}
	return last[len(b)]
}
