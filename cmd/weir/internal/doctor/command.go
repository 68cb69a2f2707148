package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/fanout"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/cmd/weir/internal/shardlag"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/lease"
)

type options struct {
	target.Flags
	out     cli.Format
	streams []string
	look    target.LookFlag
	queue   string
}

func Command(t cli.Terminal) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "doctor --app NAME --store URL",
		Short: "Find problems of an application and say what to do",
		Long: `Looks at an application twice, some seconds apart, and at its streams. For each
problem it prints a sentence that says what is wrong and what to do: shards that
make no progress, dead workers, no leader, leases without an owner, forgotten
pauses and drains, errors that workers report, missing permissions and keys,
expired checkpoints, streams that were deleted and created again, and workers of
the KCL that run after the move to weir. It changes nothing.

Each shard is read once at its checkpoint, and shards with unhandled records
once more. These reads count against the five per second that a shard allows.
Permissions are checked for the user who runs this command. Clocks are not
compared: a worker counts as dead if it sends no heartbeat for its own
FailoverAfter, so the command watches for as long as the workers' settings
require, for a minute or two heartbeats at most (see --look).

The same problem of many shards, workers or streams is one finding, and an
outage of the service is one finding for all of them. The exit code is that of
the worst finding: 3 for an error (records are not handled, or may be lost), 4
for a warning, 5 if there are only pauses and drains, 0 if nothing is wrong. 1
means that the command could not look.

With --queue it looks at a queue, and needs neither an application nor a store:
its status and settings, the records in flight, dead letters, receives that were
spent, and records that no process receives. The numbers come from CloudWatch.`,
		Example: `  weir doctor --app billing --store sqlite:billing.db
  weir doctor --app billing --store dynamodb:weir -o json | jq -r '.findings[] | .text'
  weir doctor --queue billing
  weir doctor --app billing --store sqlite:billing.db; [ $? -ne 3 ] || page-on-call`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("queue") {
				return o.examineQueue(cmd, t)
			}
			url, err := o.URL(cmd, "app")
			if err != nil {
				return err
			}
			if err := o.look.Check(false); err != nil {
				return err
			}
			if err := awsconf.CheckStreams(o.streams...); err != nil {
				return err
			}
			return o.run(cmd.Context(), t, url)
		},
	}
	o.Register(cmd)
	cmd.Flags().StringArrayVar(&o.streams, "stream", nil, "a stream that the application should read, by `NAME` or ARN; may be repeated (streams with leases are checked anyway)")
	cmd.Flags().StringVar(&o.queue, "queue", "", "look at a queue, by `NAME` or ARN, and not at an application")
	o.look.Register(cmd, "how long to watch; by default until each worker has sent a heartbeat or counts as dead")
	o.out.Register(cmd, "output format")
	return cmd
}

// report is the output of weir doctor.
type report struct {
	App      string         `json:"app"`
	Verdict  health.Verdict `json:"verdict"`
	Shards   int            `json:"leases"`  // of shards that are not finished
	Workers  int            `json:"workers"` // that send heartbeats
	Leader   string         `json:"leader,omitempty"`
	Findings []Finding      `json:"findings"`
}

func (o *options) run(ctx context.Context, t cli.Terminal, url stores.URL) error {
	store, view, err := o.Open(ctx, t, url)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // the store was only read
	client, err := o.AWS.Kinesis(ctx, t)
	if err != nil {
		return err
	}
	facts, err := o.examine(ctx, t, store, client, view)
	if err != nil {
		return err
	}
	past, err := shardlag.Past(ctx, store, o.App, time.Now())
	if err != nil {
		t.Note("the history of the application is not known: %s", explain.Error(store.Explain(err)))
	}
	report := report{
		App: o.App, Shards: openShards(facts.Second), Leader: leading(facts),
		Findings: Diagnose(facts),
	}
	report.Verdict = verdict(facts, past, time.Now())
	for _, w := range facts.Second.Workers {
		if facts.Beats[w.Session] && !w.Ended {
			report.Workers++
		}
	}
	if report.Findings == nil {
		report.Findings = []Finding{}
	}
	if o.out == cli.FormatJSON {
		err = json.NewEncoder(t.Out).Encode(report)
	} else {
		_, err = fmt.Fprint(t.Out, report.text(t.Prose(), t.Findings()))
	}
	if err == nil {
		err = report.exitCode()
	}
	return err
}

// openShards returns the number of shards that are not finished.
func openShards(v lease.View) int { return observe.GroupOf(v, nil).Open }

// verdict returns the verdict on the application according to two reads of the store. The second
// read is the current one.
func verdict(f Facts, past observe.Past, now time.Time) health.Verdict {
	var seen observe.Watch
	seen.Remember(past)
	for i, view := range []lease.View{f.First, f.Second} {
		look := observe.Look{
			At: now.Add(-f.Apart * time.Duration(1-i)), View: view, Lags: map[lease.Key]observe.Lag{}, Retention: map[string]time.Duration{},
		}
		if i == 1 {
			look.Silent = shardlag.SilentIn(view, f.Beats, f.Apart)
		}
		for _, s := range f.Streams {
			look.Retention[s.Name] = s.Retention
		}
		for k, s := range f.Shards {
			if read := []Look{s.First, s.Second}[i]; read.Err == "" {
				look.Lags[k] = observe.Lag{Behind: read.Age, Expired: read.Expired}
			}
		}
		seen.Add(look)
	}
	facts := seen.Facts(f.App, now)
	for _, l := range f.Second.Leases {
		facts.NoLag = cmp.Or(facts.NoLag, f.Shards[l.Key].Second.Err)
	}
	return health.Conclude(facts)
}

// exitCode returns the exit code for the worst finding. All findings have been printed already.
func (r report) exitCode() error { return exitCode(r.Findings) }

func exitCode(all []Finding) error {
	for _, v := range []struct {
		severity Severity
		code     cli.ExitCode
	}{{Error, cli.ExitWrong}, {Warning, cli.ExitWarned}, {Intended, cli.ExitIntended}} {
		if slices.ContainsFunc(all, func(f Finding) bool { return f.Severity == v.severity }) {
			return v.code
		}
	}
	return nil
}

// leading returns the name of the leader. It returns "" if the leader's heartbeat should have been
// seen but was not.
func leading(f Facts) string {
	for _, w := range f.Second.Workers {
		if w.Session == f.Second.Leader.Session && !w.Ended && (f.Beats[w.Session] || f.Apart < 2*w.Times.Or(lease.DefaultTimes).Heartbeat) {
			return cmp.Or(w.Name, w.Session)
		}
	}
	return ""
}

func (r report) text(prose, columns int) string {
	count := map[Severity]int{}
	for _, f := range r.Findings {
		count[f.Severity]++
	}
	var b strings.Builder
	leader := "no worker leads"
	if r.Leader != "" {
		leader = r.Leader + " leads"
	}
	result := "nothing is wrong"
	if count[Intended] > 0 {
		result += ", and something is paused or drained on purpose"
	}
	if n := count[Error] + count[Warning]; n > 0 {
		result = fmt.Sprintf("%s and %s", cli.Count(count[Error], "error"), cli.Count(count[Warning], "warning"))
	}
	workers := cli.Count(r.Workers, "worker") + cli.Plural(r.Workers, " is alive", " are alive")
	b.WriteString(cli.Wrapped(fmt.Sprintf("Application %s: %s. %s, %s; %s.", r.App, result,
		cli.Count(r.Shards, "shard"), workers, leader), "  ", columns))
	if r.Verdict.Sentence != "" {
		cli.WriteVerdict(&b, r.Verdict, prose)
	}
	writeFindings(&b, r.Findings, columns)
	return b.String()
}

func writeFindings(b *strings.Builder, all []Finding, columns int) {
	const indent = "          "
	for _, f := range all {
		fmt.Fprintf(b, "\n%-*s", len(indent), f.Severity)
		b.WriteString(cli.Wrapped("["+f.Code+"] "+f.Text, indent, columns))
		b.WriteString(indent + cli.Wrapped("→ "+f.Do, indent+"  ", columns))
	}
}

// examine collects the facts. It queries the streams and the lags of the shards while it watches
// the store. It then queries the lags of those shards again that have waiting records or could not
// be read.
func (o *options) examine(ctx context.Context, t cli.Terminal, store stores.Store, client *kinesis.Client, first lease.View) (Facts, error) {
	f := Facts{App: o.App, First: first, Second: first, Apart: o.look.UntilDead(first), Beats: map[string]bool{}}
	t.Note("watching application %s for %s", o.App, figures.Duration(f.Apart))
	var watching sync.WaitGroup
	var blind error
	watching.Go(func() {
		blind = target.Watch(ctx, store, o.App, first, f.Apart, func(now lease.View) bool {
			f.Second = now
			for _, w := range target.BeatBetween(first, now) {
				f.Beats[w.Session] = true
			}
			return true
		})
	})
	old, oldErr := o.readOld(ctx, t, store)
	var denied denials
	f.Streams = o.askStreams(ctx, client, target.StreamsOf(first.Leases), &denied)
	before := shardlag.Ask(ctx, t, client, first.Leases, "")
	watching.Wait()
	if err := errors.Join(ctx.Err(), blind, oldErr); err != nil {
		return f, store.Explain(err)
	}
	f.Old = old.again(ctx)
	var again []lease.Lease
	for _, l := range f.Second.Leases {
		if seen, asked := before[l.Key]; asked && (seen.Waits || seen.Err != nil) {
			again = append(again, l)
		}
	}
	after := shardlag.Ask(ctx, t, client, again, "")
	if err := ctx.Err(); err != nil {
		return f, err
	}
	f.Shards = map[lease.Key]Shard{}
	for k, seen := range before {
		later, asked := after[k]
		if !asked {
			later = seen
		}
		denied.note(later.Err, "stream "+k.Stream)
		f.Shards[k] = Shard{First: lookOf(seen), Second: lookOf(later)}
	}
	f.Denied = denied.sorted()
	return f, nil
}

func lookOf(l shardlag.Lag) Look {
	if l.Err != nil {
		return Look{Err: explain.Error(l.Err), Code: codeOf(l.Err)}
	}
	return Look{Waits: l.Waits, Age: l.Age, Expired: l.Expired}
}

func codeOf(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// denials collects the calls that the service refused for lack of a permission. Each call is listed
// once.
type denials struct {
	mu  sync.Mutex
	all []Denied
}

// note adds the call to the list if err reports that the service refused the call for lack of a
// permission. It is safe for concurrent use.
func (d *denials) note(err error, about string) {
	var op *smithy.OperationError
	if !explain.IsAccessDenied(err) || strings.HasPrefix(codeOf(err), "KMS") || !errors.As(err, &op) {
		return
	}
	found := Denied{Action: strings.ToLower(op.Service()) + ":" + op.Operation(), On: about}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Contains(d.all, found) {
		d.all = append(d.all, found)
	}
}

func (d *denials) sorted() []Denied {
	slices.SortFunc(d.all, func(a, b Denied) int { return strings.Compare(a.On+a.Action, b.On+b.Action) })
	return d.all
}

// askStreams queries the streams in named, and those of --stream.
func (o *options) askStreams(ctx context.Context, client *kinesis.Client, named []string, denied *denials) []Stream {
	wanted := map[string]bool{}
	all := slices.Clone(named)
	for _, s := range o.streams {
		name := s[strings.LastIndex(s, "/")+1:]
		wanted[name] = true
		if i := slices.Index(all, name); i >= 0 {
			all[i] = s // use the ARN if it was given
		} else {
			all = append(all, s)
		}
	}
	streams := make([]Stream, len(all))
	var asked sync.WaitGroup
	turns := make(chan struct{}, 8)
	for i, s := range all {
		turns <- struct{}{}
		asked.Go(func() {
			defer func() { <-turns }()
			streams[i] = askStream(ctx, client, s, denied)
			streams[i].Wanted = wanted[streams[i].Name]
		})
	}
	asked.Wait()
	return streams
}

func askStream(ctx context.Context, client *kinesis.Client, stream string, denied *denials) Stream {
	about, err := awsconf.AskStream(ctx, client, stream)
	s := Stream{Name: about.Name, Shards: about.Shards, Born: about.Born, Retention: about.Retention, Now: about.Now, Status: about.Status}
	if err != nil {
		denied.note(err, "stream "+about.Name)
		s.Err, s.Missing = explain.Error(err), errors.Is(err, streams.ErrNoStream)
		return s
	}
	denied.note(about.Denied, "stream "+about.Name)
	if about.ARN == "" {
		return s
	}
	// Workers do not make this call, so its rate limit does not affect them.
	if _, consumers, err := fanout.List(ctx, client, about.ARN); err == nil {
		s.Consumers = []string{}
		for _, c := range consumers {
			s.Consumers = append(s.Consumers, c.Name)
		}
	}
	return s
}
