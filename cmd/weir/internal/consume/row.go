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

// row describes one flag of consume.
type row struct {
	name, short string
	// to sets the option. It is a pointer to the option, a pflag.Value, or a function that adds the
	// flag. It is nil if the function of the previous row also adds this flag.
	to       any
	text     string // help text; unused if a function adds the flag
	complete words
	is       string // this flag is Lambda's name for the named flag of weir
	rules    []rule
	then     func() error // completes the options after all rules are met
}

// words contains the values that a shell offers for a flag.
type words = []cobra.Completion

// rule is a condition for using a flag. It depends on other flags, or on the value of the flag
// itself.
type rule struct {
	met  bool
	text string // the error if the rule is not met; the word FLAG at the start is replaced
}

// register adds the flag to a command.
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

// check does nothing if the flag is not set. It returns an error if a rule is not met. Otherwise it
// completes the options.
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
		return cli.Usagef("--%s and --%s are two names of the same setting: give one of them",
			r.name, r.is)
	}
	if r.then == nil {
		return nil
	}
	return r.then()
}

// number returns the value of a flag that sets an integer from low to high.
func number(to *int, low, high int) pflag.Value {
	return &cli.Number[int]{
		To: to, Parse: strconv.Atoi, Low: low, High: high, Want: fmt.Sprintf("%d to %d", low, high),
	}
}

// parsed returns the value of a flag that sets an integer from low to high. Unlike number, it reads
// the value with parse. want describes the allowed values.
func parsed(to *int, parse func(string) (int, error), low, high int, want string) pflag.Value {
	return &cli.Number[int]{To: to, Parse: parse, Low: low, High: high, Want: want}
}

// with returns a function that adds a flag which several commands share. The flag sets *to.
func with[T any](add func(*cobra.Command, *T), to *T) func(*cobra.Command) {
	return func(cmd *cobra.Command) { add(cmd, to) }
}

// listensOn returns a function that completes the address in a flag.
func listensOn(flag string, addr *string) func() error {
	return func() (err error) {
		*addr, err = serve.Addr(flag, *addr)
		return err
	}
}

// parseRecordAge parses a maximum age in seconds. It accepts only values that Lambda accepts.
func parseRecordAge(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && n >= 0 && n < 60 {
		err = fmt.Errorf("%d is too short", n)
	}
	return n, err
}

// callsOfRetries parses a number of retries and returns the number of calls. The result 0 means no
// limit.
func callsOfRetries(s string) (int, error) {
	n, err := strconv.Atoi(s)
	return n + 1, err
}

func parseSuspect(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && n == 0 {
		err = errors.New("0 means the default")
	}
	return n, err
}
