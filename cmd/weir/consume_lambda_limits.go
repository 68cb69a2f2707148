package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/lambda"
)

// lambdaLimits bound what functions of Lambda get.
type lambdaLimits struct {
	age int // seconds; -1 and 0 are no bound
}

var aboutLimits = []string{"maximum-record-age-in-seconds"}

func (l *lambdaLimits) register(f *lambdaFlags) {
	flags := f.flag.Flags()
	flags.Var(&number[int]{to: &l.age, parse: parseRecordAge, low: -1, high: 604_800, want: "60 to 604800, or -1 for no limit"}, "maximum-record-age-in-seconds",
		"give records that are older up without a try, 60 to 604800; -1 is no limit (default -1). --max-age gives up only what has failed")
}

// parseRecordAge reads a number of seconds that Lambda takes for an age.
func parseRecordAge(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && n >= 0 && n < 60 {
		err = fmt.Errorf("%d is too short", n)
	}
	return n, err
}

// apply checks the flags, which are about a function that is given.
func (l *lambdaLimits) apply(f *lambdaFlags, o *consumeOptions) error {
	if l.age > 0 {
		const name = "maximum-record-age-in-seconds"
		switch {
		case f.flag.Flags().Changed("max-age"):
			return usagef("--%s gives up what is older, and --max-age only what has also failed: give one of them", name)
		case o.giveUp.dead == "":
			return usagef("--%s is about giving records up: say where their letters go, with --dead file:PATH", name)
		}
		o.giveUp.rejects = true
	}
	return nil
}

// maxAge is the age at which a function does not get records any more; 0 is no bound.
func (l *lambdaLimits) maxAge() time.Duration { return time.Duration(max(l.age, 0)) * time.Second }

// function is the handler that gives batches to a function, in a way to invoke it.
func (o *consumeOptions) function(invoke func(context.Context, *weir.Batch, []byte) ([]byte, error), region string) lambda.Handler {
	return lambda.Handler{Invoke: invoke, Source: o.source(region), Report: len(o.lambda.respond) > 0, MaxAge: o.lambda.limits.maxAge()}
}
