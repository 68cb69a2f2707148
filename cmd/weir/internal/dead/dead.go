// Package dead implements the command "weir dead". The command shows dead letters and handles them
// again.
package dead

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/deadletters"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/records"
	"github.com/weir-go/weir/deadletter"
)

func Command(t cli.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "dead",
		SuggestFor: []string{"deadletter", "deadletters", "dead-letter", "dead-letters", "letters", "dlq"},
		Short:      "List dead letters and handle them again",
		Long: `Lists and handles dead letters: records that an application could not handle and
has put aside, with "weir consume --dead" or with OnFailure of the Go package. A
dead letter contains the whole record and the reason.

A dead letter is kept until its record has been handled again (done) or a person
drops it. One that is begun was being handled when weir was interrupted, so its
outcome is unknown: decide with "weir dead retry --state begun" or "weir dead
drop --state begun".

A stream (--dead kinesis:STREAM) has no such marks and removes nothing before
its retention ends: a dead letter stays kept after it was handled, and one that
is retried twice is handled twice. A queue (--dead sqs:URL) cannot be listed:
"weir dead peek" shows some of its dead letters, and "weir dead retry" deletes
those that were handled.

Applications can share a place. --app chooses the dead letters of one application. "weir
dead retry" and "weir dead drop" need it if the place has dead letters of
several applications.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(listCommand(t), showCommand(t), dropCommand(t), retryCommand(t), createCommand(t), peekCommand(t))
	return cmd
}

// Flags contains the flags that select a location of dead letters, and dead letters in it.
type Flags struct {
	Dead         string
	AWS          awsconf.Flags
	filter       deadletter.Selection
	reason       string
	states       []string
	since, until string
	shard        string
}

var letterStates = []deadletter.State{deadletter.Kept, deadletter.Begun, deadletter.Done, deadletter.Dropped}

func (l *Flags) register(cmd *cobra.Command, states string) {
	l.registerPlace(cmd)
	f := cmd.Flags()
	registerLetterApp(cmd, &l.filter.App)
	f.StringVar(&l.filter.Stream, "stream", "", "only dead letters of the stream `NAME`")
	f.StringVar(&l.shard, "shard", "", "only dead letters of the shard `ID` "+records.ShardHelp)
	f.StringVar(&l.filter.Key, "key", "", "only dead letters with the partition `KEY`")
	f.StringVar(&l.filter.Error, "error", "", "only dead letters whose error, or its type, contains `TEXT`")
	f.StringVar(&l.reason, "reason", "", "only dead letters with this `REASON`: rejected, attempts, age or killed")
	f.StringVar(&l.since, "since", "", "only dead letters from this `TIME` or later (2026-01-31T12:00:00Z, or how long ago: 15m)")
	f.StringVar(&l.until, "until", "", "only dead letters from before this `TIME`")
	f.StringArrayVar(&l.states, "state", nil, "only dead letters in this `STATE`: kept, begun, done or dropped; may be repeated (default "+states+")")
	cli.MustComplete(cmd, "reason", "rejected\tit can never succeed", "attempts\tit failed the maximum number of times", "age\tit failed and was too old", "killed\tit killed workers")
	cli.MustComplete(cmd, "state", "kept\tnot handled again yet", "begun\thandling it was interrupted", "done\tit was handled again", "dropped\ta person dropped it")
}

// registerLetterApp adds the flag --app. For retry and drop, --app alone does not select letters:
// they need another filter or --all too.
func registerLetterApp(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "app", "", "only dead letters of the application `NAME`; retry and drop need it if there are several")
}

func (l *Flags) registerPlace(cmd *cobra.Command) {
	deadletters.Register(cmd, &l.Dead, "where the dead letters are")
	l.AWS.Register(cmd, false)
	l.AWS.Role.Register(cmd)
}

// Open opens the location of the dead letters.
func (l *Flags) Open(ctx context.Context, t cli.Terminal, write bool) (deadletters.Letters, error) {
	place, err := deadletters.Parse(l.Dead)
	if err != nil {
		return deadletters.Letters{}, err
	}
	if place.Kind == deadletters.Queue {
		return deadletters.Letters{}, cli.Usagef("a queue cannot be listed, and stores no states: use \"weir dead peek\" to look at dead letters in %s, and \"weir dead retry\" to take them out", place)
	}
	if place.Kind == deadletters.Stream {
		if len(l.states) > 0 {
			return deadletters.Letters{}, cli.Usagef("--state does not apply to %s: a stream stores no states, so all its dead letters are kept", place)
		}
		write = false // nothing is written there
	}
	letters, err := place.Open(ctx, t, &l.AWS, false)
	if err != nil {
		return letters, err
	}
	look := letters.Readable
	if write {
		look = letters.Writable
	}
	if err := letters.Check(ctx, false, look); err != nil {
		return letters, errors.Join(err, letters.Close())
	}
	return letters, nil
}

// choose completes the filter from the flags and the IDs. narrowed reports whether they select dead
// letters by anything besides the state and the application.
func (l *Flags) choose(cmd *cobra.Command, ids []string, states ...deadletter.State) (narrowed bool, err error) {
	if err := cli.Require(cmd, "dead"); err != nil {
		return false, err
	}
	f, now := &l.filter, time.Now()
	if l.shard != "" {
		of := ""
		if f.Shard, of, err = records.ParseShard(l.shard); err != nil {
			return false, err
		}
		if of != "" && f.Stream != "" && of != f.Stream {
			return false, cli.Usagef("--shard %s is of stream %s, not of %s", l.shard, of, f.Stream)
		}
		f.Stream = cmp.Or(f.Stream, of)
	}
	if f.Since, err = parseWhen("since", l.since, now); err != nil {
		return false, err
	}
	if f.Until, err = parseWhen("until", l.until, now); err != nil {
		return false, err
	}
	if f.Reason = deadletter.Reason(l.reason); l.reason != "" && !slices.Contains([]deadletter.Reason{deadletter.Rejected, deadletter.Attempts, deadletter.Age, deadletter.Killed}, f.Reason) {
		return false, cli.Usagef("--reason %.140q: use rejected, attempts, age or killed", l.reason)
	}
	f.States = states
	for i, s := range l.states {
		if i == 0 {
			f.States = nil
		}
		if !slices.Contains(letterStates, deadletter.State(s)) {
			return false, cli.Usagef("--state %.140q: use kept, begun, done or dropped", s)
		}
		f.States = append(f.States, deadletter.State(s))
	}
	if len(ids) > 0 {
		f.IDs = ids
	}
	narrowed = f.IDs != nil || f.Stream+f.Shard+f.Key+f.Error+l.reason != "" || !f.Since.IsZero() || !f.Until.IsZero()
	return narrowed, nil
}

// chosen returns the dead letters that the flags select. It prints the error of each dead letter
// that it cannot read, and returns the number of such letters. If the argument one is true, all
// dead letters must belong to the same application, or --app must select an application.
func (l *Flags) chosen(ctx context.Context, t cli.Terminal, letters deadletters.Letters, one bool) (items []deadletter.Item, unread int, err error) {
	seen, known, apps := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i, err := range letters.Box.Items(ctx) {
		if err != nil {
			if ctx.Err() != nil {
				return nil, 0, context.Cause(ctx)
			}
			t.Note("%s", said(err))
			unread++
			continue
		}
		if letters.Unmarked && seen[i.ID] {
			continue // the dead letter was stored twice
		}
		apps[i.App] = true
		seen[i.ID] = true
		if l.filter.App == "" || l.filter.App == i.App {
			known[i.ID], known[i.RecordID()] = true, true
		}
		if l.filter.Matches(&i) {
			items = append(items, i)
		}
	}
	for _, id := range l.filter.IDs {
		switch {
		case known[id]:
		case seen[id]:
			return nil, unread, fmt.Errorf("dead letter %.200q is not of application %s", id, l.filter.App)
		default:
			return nil, unread, fmt.Errorf("there is no dead letter %.200q%s", id, l.ofApp())
		}
	}
	if l.filter.App != "" && !apps[l.filter.App] && len(apps) > 0 {
		t.Note("%s has no dead letter of application %s, only of %s", letters.Place, l.filter.App, appNames(apps))
	}
	if one && l.filter.App == "" && len(apps) > 1 {
		return nil, unread, severalApps(letters.Place, apps)
	}
	return items, unread, nil
}

// severalApps returns the error for a command that needs dead letters of a single application.
func severalApps(place deadletters.Place, apps map[string]bool) error {
	return cli.Usagef("%s has dead letters of %s: choose one with --app (%s)", place, cli.Count(len(apps), "application"), appNames(apps))
}

// appNames returns a sorted list of application names.
func appNames(apps map[string]bool) string {
	var names []string
	for _, app := range slices.Sorted(maps.Keys(apps)) {
		names = append(names, fmt.Sprintf("%q", app))
	}
	return strings.Join(names, ", ")
}

// ofApp returns " of application NAME" if --app selects an application, and otherwise "".
func (l *Flags) ofApp() string {
	if l.filter.App == "" {
		return ""
	}
	return " of application " + l.filter.App
}

// said returns the text of an error, without names of packages.
func said(err error) string {
	text := explain.Error(err)
	for _, name := range []string{"weir: ", "sqlletters: ", "s3letters: ", "kinesisletters: ", "sqsletters: "} {
		text = strings.TrimPrefix(text, name)
	}
	return text
}

func listCommand(t cli.Terminal) *cobra.Command {
	var l Flags
	var out cli.Format
	each := false
	cmd := &cobra.Command{
		Use:   "list --dead PLACE [ID ...]",
		Short: "List dead letters",
		Long: `Lists dead letters by application, reason and error, the most frequent error
first. Errors count as the same error if they differ only in words of eight or
more characters that contain digits, such as UUIDs. For the newest dead letters
of each error, the list shows the time, the state, the number of failed calls,
the size, and the ID. With --each it shows them for all dead letters. Keys and
payloads can contain personal data, so they are shown only by "weir dead show"
and -o json. Dead letters that were handled again or dropped are listed with
--state done and --state dropped.

A line of a file, or a dead letter, that cannot be read is reported on standard
error, and the exit code is then 1.`,
		Example: `  weir dead list --dead file:dead.ndjson
  weir dead list --dead file:dead.ndjson --error timeout --since 2h
  weir dead list --dead s3://my-bucket/dead --app billing --stream flights
  weir dead list --dead postgres://weir@db/shop --each
  weir dead list --dead file:dead.ndjson -o json | jq -r '.id'`,
		RunE: func(cmd *cobra.Command, ids []string) (err error) {
			if _, err := l.choose(cmd, ids, deadletter.Kept, deadletter.Begun); err != nil {
				return err
			}
			letters, err := l.Open(cmd.Context(), t, false)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, letters.Close()) }()
			items, unread, err := l.chosen(cmd.Context(), t, letters, false)
			if err != nil {
				return err
			}
			if out == cli.FormatJSON {
				to := json.NewEncoder(t.Out)
				for i := range items {
					if err := to.Encode(&items[i]); err != nil {
						return err
					}
				}
				return letters.Unreadable(unread)
			}
			if _, err := fmt.Fprint(t.Out, groupsText(items, each, time.Now())); err != nil {
				return err
			}
			return letters.Unreadable(unread)
		},
	}
	l.register(cmd, "kept and begun")
	cmd.Flags().BoolVar(&each, "each", false, "show all dead letters of each error, not only the newest three")
	out.Register(cmd, "output format; json is a dead letter a line, with its payload")
	return cmd
}

func showCommand(t cli.Terminal) *cobra.Command {
	var l Flags
	var out cli.Format
	payload := false
	cmd := &cobra.Command{
		Use:   "show --dead PLACE ID",
		Short: "Show one dead letter completely",
		Long: `Shows a dead letter in any state, with the key and the payload of its record. A
payload of JSON is indented, text is unchanged, and everything else is shown in
hexadecimal digits. A payload that begins as gzip does is unpacked first. With
--data it writes only the payload, unchanged. With -o json it writes one object,
with the payload in base64. ID is the ID of the dead letter or of its record
(stream/shard/position). If several applications have a dead letter for that
record, --app chooses one.`,
		Example: `  weir dead show --dead file:dead.ndjson flights/shardId-000000000000/49590338271490256608559692538361571095921575989136588898
  weir dead show --dead file:dead.ndjson --data flights/shardId-000000000000/49590338271490256608559692538361571095921575989136588898 > record`,
		RunE: func(cmd *cobra.Command, ids []string) (err error) {
			if len(ids) != 1 {
				return cli.Usagef("%s shows one dead letter: give its ID", cmd.CommandPath())
			}
			if _, err := l.choose(cmd, ids, letterStates...); err != nil {
				return err
			}
			letters, err := l.Open(cmd.Context(), t, false)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, letters.Close()) }()
			items, _, err := l.chosen(cmd.Context(), t, letters, false)
			if err != nil {
				return err
			}
			if len(items) > 1 { // IDs were given, but not just one
				apps := map[string]bool{}
				for _, i := range items {
					apps[i.App] = true
				}
				if len(apps) > 1 {
					return severalApps(letters.Place, apps)
				}
			}
			if payload {
				_, err = t.Out.Write(items[0].Data)
				return err
			}
			if out == cli.FormatJSON {
				return json.NewEncoder(t.Out).Encode(&items[0])
			}
			_, err = fmt.Fprint(t.Out, letterText(&items[0]))
			return err
		},
	}
	l.registerPlace(cmd)
	registerLetterApp(cmd, &l.filter.App)
	cmd.Flags().BoolVar(&payload, "data", false, "the payload alone, unchanged")
	out.Register(cmd, "output format; json is one object, with the payload in base64")
	return cmd
}

// parseWhen parses the value of a flag: a time, or a duration that is subtracted from now.
func parseWhen(flag, s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(s); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return at, cli.Usagef("--%s %.140q is not a time: use one like 2026-01-31T12:00:00Z, or how long ago (15m)", flag, s)
	}
	return at, nil
}
