package dashboard

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/codecs"
	"github.com/weir-go/weir/cmd/weir/internal/dead"
	"github.com/weir-go/weir/cmd/weir/internal/deadletters"
	"github.com/weir-go/weir/cmd/weir/internal/shellexec"
	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/deadletter"
)

// pageLetters contains the flags for dead letters: where they are, and which command retries them.
type pageLetters struct {
	dead        string
	exec        string
	records     cli.Format
	credentials bool
	payloads    bool
	decode      codecs.Decode
}

// mostShown limits the decoded data of a payload that the page shows, in bytes.
const mostShown = 1 << 20

func (p *pageLetters) register(cmd *cobra.Command) {
	deadletters.Register(cmd, &p.dead, "show dead letters of records that were dead-lettered")
	cmd.Flags().StringVar(&p.exec, "retry-exec", "", "shell `COMMAND` with which the page handles a dead letter again, as \"weir dead retry --exec\" does")
	cmd.Flags().BoolVar(&p.payloads, "show-payloads", false, "show the payloads of dead letters to every user of the page; they can contain personal data")
	p.records = cli.FormatText
	cmd.Flags().Var(&p.records, "input", "input of that command: text is the data, json an object about the record")
	cli.MustComplete(cmd, "input", "text\tthe data", "json\tan object about the record")
	p.decode.Register(cmd)
	shellexec.RegisterCredentials(cmd, &p.credentials)
}

func (p *pageLetters) check(cmd *cobra.Command, writes bool) error {
	if place, err := deadletters.Parse(p.dead); err == nil && place.Kind == deadletters.Queue && !cmd.Flags().Changed("dead") {
		p.dead = "" // a queue cannot be listed; the environment sets it for workers
	}
	switch {
	case p.exec != "" && !writes:
		return cli.Usagef("--retry-exec needs a page that may change things: add --allow-writes")
	case p.exec != "" && p.dead == "":
		return cli.Usagef("--retry-exec handles dead letters again: add --dead with the place where they are")
	case p.payloads && p.dead == "":
		return cli.Usagef("--show-payloads shows the payloads of dead letters: add --dead with the place where they are")
	case p.exec == "" && (cmd.Flags().Changed("input") || p.credentials || p.decode.On()):
		return cli.Usagef("--input, --decode and --exec-credentials apply only to --retry-exec: add it")
	}
	return nil
}

// open makes the page show the dead letters until close is called. If the flags ask for it, the
// page can also retry them.
func (p *pageLetters) open(ctx context.Context, t cli.Terminal, flags *awsconf.Flags, o *dashboard.Options) (close func() error, err error) {
	if p.dead == "" {
		return func() error { return nil }, nil
	}
	place := dead.Flags{Dead: p.dead, AWS: *flags}
	letters, err := place.Open(ctx, t, p.exec != "")
	if err != nil {
		return nil, err
	}
	o.Letters, o.ShowPayloads, o.Codecs = letters.Box, p.payloads, codecs.Compressed(mostShown)
	if at, err := deadletters.Parse(p.dead); err == nil {
		o.LettersPlace = at.String()
	}
	switch {
	case p.exec == "":
	case letters.Unmarked:
		_ = letters.Close() // nothing was written
		return nil, cli.Usagef("the page cannot handle dead letters in a stream again: a stream stores no states, so each dead letter would be handled again every time; leave out --retry-exec, and use \"weir dead retry\"")
	default:
		to := shellexec.Handler{Terminal: t, Command: p.exec, Format: p.records, Credentials: p.credentials}
		o.RetryLetter = func(ctx context.Context, i deadletter.Item) (err error) {
			if i.Data, err = p.decode.Data(ctx, i.Data); err != nil {
				return fmt.Errorf("--decode %s: %w", &p.decode, err)
			}
			return to.Letter(ctx, &i)
		}
	}
	return letters.Close, nil
}
