package consume

import (
	"context"
	"errors"
	"strings"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/deadletters"
	"github.com/weir-go/weir/deadletter"
)

// failureFlags contains the settings of dead letters that are not in weir.Options.
type failureFlags struct {
	dead     string
	asLambda bool              // write dead letters in Lambda's format
	place    deadletters.Place // the parsed value of dead; empty if nothing can be dead-lettered
	letters  deadletters.Letters
}

// applyFailurePolicy completes the options for dead letters. It returns an error if the flags
// contradict each other.
func (o *options) applyFailurePolicy(given func(flag string) bool) error {
	g, to := &o.failures, &o.settings.OnFailure
	fails := o.settings.Filter.NotJSON == weir.FailNotJSON || o.decode.On()
	handled := o.exec != "" || o.lambda.used() || fails
	when := to.MaxAttempts > 0 || to.MaxAge != 0 || o.lambda.age > 0 || o.execResults.On || fails
	switch {
	case g.dead == "", !given("dead") && !(handled && when): // the environment may set a place for other commands
		return nil
	case !handled:
		return cli.Usagef("--dead needs a handler that can fail: add --exec or --lambda, or --filter-not-json fail for records that are not JSON")
	case !when && o.lambda.command != "":
		return cli.Usagef("--dead by itself dead-letters no record: add --maximum-retry-attempts, --maximum-record-age-in-seconds or --max-age")
	case !when:
		return cli.Usagef("--dead by itself dead-letters no record: add --max-attempts or --max-age, or let the command reject records, with --exec-results")
	}
	if given("outage-grace") && to.OutageGrace == 0 {
		to.OutageGrace = -1
	}
	if given("dead-letters-per-minute") && to.MaxPerMinute == 0 {
		to.MaxPerMinute = -1
	}
	place, err := deadletters.Parse(g.dead)
	if err != nil {
		return err
	}
	if g.asLambda && place.Kind != deadletters.Queue && place.Kind != deadletters.S3 {
		return cli.Usagef("--dead-format lambda applies only to a queue or a bucket, as with Lambda's event sources: use --dead sqs:URL or s3://BUCKET/PREFIX, or leave it out")
	}
	g.place, to.Destination = place, &g.letters
	return nil
}

// open opens the destination of dead letters, if the flags set one. If the destination is unusable,
// open returns an error now, and not when the first record is dead-lettered.
func (g *failureFlags) open(ctx context.Context, t cli.Terminal, f *awsconf.Flags, streams []string, form func() (deadletter.Lambda, error)) error {
	if g.place.Kind == "" {
		return nil
	}
	letters, err := g.place.Open(ctx, t, f, true, streams...)
	if err == nil && g.asLambda {
		err = letters.InLambdasForm(form)
	}
	if err == nil {
		err = letters.Check(ctx, f.Wait, letters.Writable)
	}
	g.letters = letters
	if err != nil {
		return errors.Join(err, letters.Close())
	}
	return nil
}

// lambdasForm returns the origin that dead letters in Lambda's format contain. The account is known
// only if the stream is given by its ARN.
func (o *options) lambdasForm(region string) (deadletter.Lambda, error) {
	before := ""
	for _, s := range o.streams {
		at, _, found := strings.Cut(s, ":stream/")
		if found && before != "" && at != before {
			return deadletter.Lambda{}, cli.Usagef("--dead-format lambda: %s and %s are in different accounts or regions, and a dead letter names only one: run a separate worker for each", before, at)
		}
		if found {
			before = at
		}
	}
	if before == "" {
		before = "arn:aws:kinesis:" + region + ":000000000000"
	}
	_, first, found := strings.Cut(o.streams[0], ":stream/")
	if !found {
		first = o.streams[0]
	}
	return deadletter.Lambda{
		FunctionARN: strings.Replace(before, ":kinesis:", ":lambda:", 1) + ":function:" + o.app,
		StreamARN:   before + ":stream/" + first,
	}, nil
}
