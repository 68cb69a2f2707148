package consume

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/deadletters"
	"github.com/weir-go/weir/deadletter"
)

// giveUpFlags hold the settings of dead letters that are not in the options.
type giveUpFlags struct {
	dead     string
	asLambda bool // letters are written in Lambda's form
	rejects  bool // a command or a function can say that a record is to be given up
	flag     *cobra.Command
	place    deadletters.Place // the parsed dead, if anything is given up
	letters  deadletters.Letters
}

// the flags that say when records are given up, and have no meaning without a place for letters
var aboutGivingUp = []string{"attempts", "max-age", "bisect", "patience", "dead-per-minute", "dead-format"}

func (g *giveUpFlags) register(cmd *cobra.Command, to *weir.GiveUp) {
	g.flag = cmd
	f := cmd.Flags()
	deadletters.Register(cmd, &g.dead, "destination of dead letters")
	f.Var(&cli.Number[int]{To: &to.Attempts, Parse: strconv.Atoi, Low: 1, High: 10_000, Want: "1 to 10000"}, "attempts", "dead-letter a batch after this number of failed calls, 1 to 10000 (default: never)")
	f.Var(&cli.Span{To: &to.MaxAge}, "max-age", "give a batch up that is failed at when it is older, from 1s (default: never)")
	f.BoolVar(&to.Bisect, "bisect", false, "find the record that fails: pass a failed batch again in halves, and dead-letter single records only")
	f.Var(&cli.Span{To: &to.Patience, Zero: true}, "patience",
		"how long to wait before dead-lettering if no other record is handled either, because the cause may be an outage; 0 does not wait (default 2m)")
	f.Var(&cli.Number[int]{To: &to.PerMinute, Parse: strconv.Atoi, Low: 0, High: 1_000_000, Want: "0 to 1000000"}, "dead-per-minute", "the maximum number of records to dead-letter per minute; 0 is no limit (default 60)")
	cli.Choose(cmd, "dead-format", &g.asLambda, "format of dead letters: weir, or lambda, which AWS Lambda sends to a queue (without the record) or puts into a bucket (with it); only for sqs: and s3:",
		cli.Word("letter", false, "readable by \"weir dead\""), cli.Word("lambda", true, "readable by programs that expect Lambda's format"))
}

// apply completes the options. handled says that a command or a function handles the batches.
func (g *giveUpFlags) apply(to *weir.GiveUp, handled bool) error {
	given := func(name string) bool { return g.flag.Flags().Changed(name) }
	for _, name := range aboutGivingUp {
		if given(name) && g.dead == "" {
			return cli.Usagef("--%s needs a destination for dead letters: add --dead, such as --dead file:PATH", name)
		}
	}
	when := given("attempts") || given("max-age") || g.rejects
	switch {
	case g.dead == "", !given("dead") && !(handled && when): // the environment may name a place for others
		return nil
	case !handled:
		return cli.Usagef("--dead needs a handler that can fail: add --exec or --lambda, or --filter-not-json fail for records that are not JSON")
	case !when && given("lambda"):
		return cli.Usagef("--dead alone dead-letters nothing: add --maximum-retry-attempts, --maximum-record-age-in-seconds or --max-age")
	case !when:
		return cli.Usagef("--dead alone dead-letters nothing: add --attempts or --max-age, or let the command reject records, with --exec-results")
	}
	if given("patience") && to.Patience == 0 {
		to.Patience = -1
	}
	if given("dead-per-minute") && to.PerMinute == 0 {
		to.PerMinute = -1
	}
	place, err := deadletters.Parse(g.dead)
	if err != nil {
		return err
	}
	if g.asLambda && place.Kind != deadletters.Queue && place.Kind != deadletters.S3 {
		return cli.Usagef("--dead-format lambda applies only to a queue or a bucket, as with Lambda's event sources: use --dead sqs:URL or s3://BUCKET/PREFIX, or leave it out")
	}
	g.place, to.To = place, &g.letters
	return nil
}

// open opens the destination of dead letters, if one is set. An unusable destination fails here,
// not when the first record needs it.
func (g *giveUpFlags) open(ctx context.Context, t cli.Terminal, f *awsconf.Flags, streams []string, form func() (deadletter.Lambda, error)) error {
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

// lambdasForm has the source that letters in Lambda's form name. The account is known only if the
// stream is given by its ARN.
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
