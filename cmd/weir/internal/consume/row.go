package consume

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/serve"
)

// row is a flag of consume.
type row struct {
	name, short string
	// to is a pointer to the option, a pflag.Value that sets it, or a func that adds the flag. It
	// is nil if the row before adds the flag.
	to       any
	text     string // for the help, unless a func adds the flag
	complete words
	is       string // the flag of weir for which this one is Lambda's name
	rules    []rule
	then     func() error // completes the options if the rules are met
}

// words are the values that a shell offers for a flag.
type words = []cobra.Completion

// rule is a condition of a flag on other flags, or on its value.
type rule struct {
	met  bool
	text string // the error if it is not met; FLAG at its start is replaced by the flag
}

// register adds the flag.
func (r row) register(cmd *cobra.Command) {
	f := cmd.Flags()
	switch to := r.to.(type) {
	case func(*cobra.Command):
		to(cmd)
	case *string:
		f.StringVar(to, r.name, *to, r.text)
	case *[]string:
		f.StringArrayVar(to, r.name, nil, r.text)
	case *bool:
		f.BoolVarP(to, r.name, r.short, *to, r.text)
	case *int:
		f.IntVar(to, r.name, *to, r.text)
	case *time.Duration:
		f.Var(&cli.Span{To: to}, r.name, r.text)
	case pflag.Value:
		f.Var(to, r.name, r.text)
	}
	if words, is := r.to.(interface{ Completions() words }); is {
		r.complete = words.Completions()
	}
	if r.complete != nil {
		cli.MustComplete(cmd, r.name, r.complete...)
	}
}

// check returns an error if the flag is set and a rule is not met. Otherwise it completes the
// options.
func (r row) check(cmd *cobra.Command) error {
	if !cmd.Flags().Changed(r.name) {
		return nil
	}
	for _, rule := range r.rules {
		if !rule.met {
			return cli.Usagef("%s", strings.Replace(rule.text, "FLAG", "--"+r.name, 1))
		}
	}
	if r.is != "" && cmd.Flags().Changed(r.is) {
		return cli.Usagef("--%s and --%s are two names of one thing: give one of them",
			r.name, r.is)
	}
	if r.then == nil {
		return nil
	}
	return r.then()
}

// number is a flag that sets a number from low to high.
func number(to *int, low, high int) pflag.Value {
	return &cli.Number[int]{
		To: to, Parse: strconv.Atoi, Low: low, High: high, Want: fmt.Sprintf("%d to %d", low, high),
	}
}

// parsed is a flag that sets a number from low to high, which parse reads.
func parsed(to *int, parse func(string) (int, error), low, high int, want string) pflag.Value {
	return &cli.Number[int]{To: to, Parse: parse, Low: low, High: high, Want: want}
}

// with returns a func that adds a flag of several commands, which sets *to.
func with[T any](add func(*cobra.Command, *T), to *T) func(*cobra.Command) {
	return func(cmd *cobra.Command) { add(cmd, to) }
}

// listensOn completes the address that a flag has set.
func listensOn(flag string, addr *string) func() error {
	return func() (err error) {
		*addr, err = serve.Addr(flag, *addr)
		return err
	}
}

// parseRecordAge reads a number of seconds that Lambda takes for an age.
func parseRecordAge(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && n >= 0 && n < 60 {
		err = fmt.Errorf("%d is too short", n)
	}
	return n, err
}

// callsOfRetries reads a number of retries, and returns the number of calls: 0 is no limit.
func callsOfRetries(s string) (int, error) {
	n, err := strconv.Atoi(s)
	return n + 1, err
}

func parseSuspect(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && n == 0 {
		err = errors.New("0 stands for the default")
	}
	return n, err
}
