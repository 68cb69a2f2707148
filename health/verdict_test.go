package health_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/health"
)

var verdictNow = time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)

// sick returns a shard with a state, a reason and a lag of 10 min.
func sick(name string, state health.State, reason health.Reason, change ...func(*health.ShardFacts)) health.ShardFacts {
	s := health.ShardFacts{Load: -1}
	s.Stream, s.Name, s.State, s.Reason = "orders", name, state, reason
	s.ReadLag, s.HandledLag, s.SavedLag = health.Unknown, 10*time.Minute, health.Unknown
	s.Left, s.Caught = health.Unknown, health.Unknown
	for _, c := range change {
		c(&s)
	}
	return s
}

func well(name string, change ...func(*health.ShardFacts)) health.ShardFacts {
	s := sick(name, health.OK, health.NoReason)
	s.HandledLag = 0
	for _, c := range change {
		c(&s)
	}
	return s
}

func growing(name string, change ...func(*health.ShardFacts)) health.ShardFacts {
	return sick(name, health.FallingBehind, health.LagGrows, append([]func(*health.ShardFacts){func(s *health.ShardFacts) {
		s.Change, s.Over = 2*time.Minute, 4*time.Minute
	}}, change...)...)
}

func history(busy, throttled int) func(*health.ShardFacts) {
	return func(s *health.ShardFacts) { s.Recent = health.Recent{Minutes: 5, Busy: busy, Throttled: throttled} }
}

func load(bytes float64) func(*health.ShardFacts) {
	return func(s *health.ShardFacts) { s.Load = bytes }
}

func reports(reason health.Reason, attempts int, err string) func(*health.ShardFacts) {
	return func(s *health.ShardFacts) {
		s.Doing, s.DoingSince, s.Attempts, s.Err = reason, verdictNow.Add(-3*time.Minute), attempts, err
	}
}

func marks(failing, unread int) func(*health.ShardFacts) {
	return func(s *health.ShardFacts) { s.Recent = health.Recent{Minutes: 4, Failing: failing, Unread: unread} }
}

// many returns n shards that are well, with a load each.
func many(n int, bytes float64) (all []health.ShardFacts) {
	for i := range n {
		all = append(all, well(fmt.Sprint("calm-", i), load(bytes)))
	}
	return all
}

func finished(name string) health.ShardFacts {
	return well(name, func(s *health.ShardFacts) { s.Finished = true })
}

// refusedCall is the answer of AWS to a call without permission, as the SDK words it.
const refusedCall = "operation error Kinesis: GetRecords, https response error StatusCode: 400, RequestID: 95-28, " +
	"AccessDeniedException: User: arn:aws:iam::1:user/billing is not authorized to perform: kinesis:GetRecords " +
	"on resource: arn:aws:kinesis:eu-west-1:1:stream/orders because no identity-based policy allows the action"

type verdictCase struct {
	facts    health.Facts
	cause    health.Cause
	explains string // "explained of affected"
	also     []health.Cause
	says     []string // parts of Text
}

func of(shards ...health.ShardFacts) health.Facts {
	return health.Facts{App: "billing", Now: verdictNow, Shards: shards, Workers: 2, Led: true}
}

func with(f health.Facts, change func(*health.Facts)) health.Facts {
	change(&f)
	return f
}

const mib = 1 << 20

func verdictCases() map[string]verdictCase {
	steady := func(name string, c ...func(*health.ShardFacts)) health.ShardFacts {
		return sick(name, health.Behind, health.LagSteady, c...)
	}
	unread := func(reason health.Reason) health.ShardFacts { return sick("a", health.Unread, reason) }
	caught := func(d time.Duration) func(*health.ShardFacts) { return func(s *health.ShardFacts) { s.Caught = d } }
	left := func(d time.Duration) func(*health.ShardFacts) { return func(s *health.ShardFacts) { s.Left = d } }
	return map[string]verdictCase{
		"all is well":                           {of(many(3, 10)...), health.NoCause, "0 of 0", nil, []string{"ok: all 3 shards are up to date.\n"}},
		"no shards":                             {of(), health.NoCause, "0 of 0", nil, []string{"unknown: it has no shards yet.\n"}},
		"all are finished":                      {of(finished("a"), finished("b")), health.NoCause, "0 of 0", nil, []string{"ok: all shards were read to their end.\n"}},
		"a finished one":                        {of(finished("a"), growing("b", history(90, 0))), health.CauseHandlerBusy, "1 of 1", nil, nil},
		"busy":                                  {of(growing("a", history(97, 0)), growing("b", history(91, 0))), health.CauseHandlerBusy, "2 of 2", nil, []string{"falling behind: ", "busy 91 % to 97 % of the last 5 min", "Options.Concurrency.Keys", "(2 of 2 affected shards)"}},
		"busy at the limit":                     {of(growing("a", history(80, 0)), growing("b", history(80, 0))), health.CauseHandlerBusy, "2 of 2", nil, []string{"busy 80 % of the last 5 min"}},
		"not busy enough":                       {of(growing("a", history(79, 0))), health.NoCause, "0 of 0", nil, []string{"Cause: not known. In the last 5 min the handler of a was busy 79 %", "weir doctor --app billing"}},
		"busy, few workers":                     {of(append(many(3, 0), growing("a", history(85, 0)), growing("b", history(85, 0)))...), health.CauseHandlerBusy, "2 of 2", nil, []string{"Start more workers: 2 workers are alive, for 5 shards"}},
		"throttled":                             {of(growing("a", history(5, 20))), health.CauseThrottled, "1 of 1", nil, []string{"throttling for 20 % of the last 5 min", "Options.FanOut", "(weir consume --fan-out=register)"}},
		"hardly throttled":                      {of(growing("a", history(5, 19))), health.NoCause, "0 of 0", nil, []string{"not known"}},
		"throttled and busy":                    {of(growing("a", history(90, 30)), growing("b", history(90, 30))), health.CauseThrottled, "2 of 2", []health.Cause{health.CauseHandlerBusy}, []string{"Also: the handler is busy."}},
		"no history":                            {of(growing("a")), health.NoCause, "0 of 0", nil, []string{"Cause: not known. Workers report once a minute", "Make the handler faster, handle keys concurrently, or split the shard."}},
		"one is hot":                            {of(append(many(31, 100<<10), growing("a", load(mib), history(40, 0)))...), health.CauseHotShard, "1 of 1", nil, []string{"a handles 1.0 MiB a second", "other 31 shards is 100 KiB"}},
		"full, lag steady":                      {of(append(many(31, 100<<10), steady("a", load(mib)))...), health.CauseHotShard, "1 of 1", nil, nil},
		"not near the limit":                    {of(append(many(31, 100), steady("a", load(700<<10)))...), health.NoCause, "0 of 0", nil, nil},
		"others are as hot":                     {of(append(many(31, 600<<10), growing("a", load(mib)))...), health.NoCause, "0 of 0", nil, nil},
		"a tie of loads":                        {of(append(many(5, 256<<10), growing("a", load(mib)))...), health.NoCause, "0 of 0", nil, nil},
		"loads are unknown":                     {of(append(many(5, -1), growing("a", load(mib)))...), health.NoCause, "0 of 0", nil, nil},
		"two are hot":                           {of(append(many(30, 10), growing("a", load(mib)), growing("b", load(mib)))...), health.CauseHotShard, "2 of 2", nil, nil},
		"alone behind":                          {of(append(many(7, -1), growing("a", history(90, 0)))...), health.CauseHotShard, "1 of 1", []health.Cause{health.CauseHandlerBusy}, []string{"Of 8 shards only a is behind"}},
		"alone, less busy":                      {of(append(many(7, -1), growing("a", history(89, 0)))...), health.CauseHandlerBusy, "1 of 1", nil, nil},
		"a single shard":                        {of(growing("a", load(mib), history(99, 0))), health.CauseHandlerBusy, "1 of 1", nil, nil},
		"records fail":                          {of(sick("a", health.Stalled, health.HandlerFailed, reports(health.HandlerFailed, 12, "no such table")), well("b")), health.CauseRecordsFail, "1 of 1", nil, []string{"has failed 12 times in a row", "weir doctor --app billing"}},
		"records fail, some were dead-lettered": {with(of(sick("a", health.Stalled, health.HandlerFailed, reports(health.HandlerFailed, 12, "no such table"))), func(f *health.Facts) { f.DeadLettered = 3 }), health.CauseRecordsFail, "1 of 1", nil, []string{"weir dead list --app billing"}},
		"failed before":                         {of(growing("a", marks(2, 0))), health.CauseRecordsFail, "1 of 1", nil, []string{"failed in 2 of the last 4 min"}},
		"failed once":                           {of(growing("a", marks(1, 0))), health.NoCause, "0 of 0", nil, nil},
		"reading failed":                        {of(growing("a", marks(0, 4))), health.CauseReadFails, "1 of 1", nil, []string{"Reading a failed in 4 of the last 4 min"}},
		"letters fail":                          {of(sick("a", health.Stalled, health.DeadLettersFailed, reports(health.DeadLettersFailed, 0, "no bucket"))), health.CauseDeadLetters, "1 of 1", nil, nil},
		"memory":                                {of(growing("a", reports(health.AwaitingMemory, 0, ""))), health.CauseMemory, "1 of 1", nil, []string{"Options.MaxMemory", "since 11:57:00 UTC"}},
		"memory, slow handlers":                 {of(growing("a", reports(health.AwaitingMemory, 0, ""), history(100, 0), func(s *health.ShardFacts) { s.Owner = "worker-1" }), growing("b", history(95, 0))), health.CauseMemory, "1 of 2", []health.Cause{health.CauseHandlerBusy}, []string{"fill Options.MaxMemory of worker-1 since 11:57:00 UTC, because the handler is slow: it was busy 95 % to 100 % of the last 5 min for 2 shards", "1. Make the handler faster"}},
		"hanging, and others are busy":          {of(sick("a", health.Stalled, health.InHandler, reports(health.InHandler, 0, ""), history(100, 0)), growing("b", history(95, 0))), health.CauseHandlerHangs, "1 of 2", []health.Cause{health.CauseHandlerBusy}, nil},
		"a worker died": {with(of(many(4, 10)...), func(f *health.Facts) {
			f.Workers, f.Leases, f.Died = 1, 4, []health.Death{{Worker: "worker-1", At: verdictNow.Add(-36 * time.Second)}}
		}), health.NoCause, "0 of 0", nil, []string{"ok: all 4 shards are up to date; worker-1 died at 11:59:24 UTC, and 1 worker holds 4 shards.\n"}},
		"a worker died long ago": {with(of(many(4, 10)...), func(f *health.Facts) {
			f.Died = []health.Death{{Worker: "worker-1", At: verdictNow.Add(-11 * time.Minute)}}
		}), health.NoCause, "0 of 0", nil, []string{"ok: all 4 shards are up to date.\n"}},
		"no room after deaths": {with(of(unread(health.NoRoom)), func(f *health.Facts) {
			f.Workers, f.Leases, f.MaxLeases = 1, 2, 2
			for i := range 5 {
				f.Died = append(f.Died, health.Death{Worker: fmt.Sprint("worker-", 5-i), At: verdictNow.Add(-time.Minute)})
			}
		}), health.CauseNoRoom, "1 of 1", nil, []string{"allows 2; worker-1 died at 11:59:00 UTC, worker-2 died at 11:59:00 UTC, worker-3 died at 11:59:00 UTC, 2 other workers died.", "If a worker died, find out why", "weir doctor --app billing"}},
		"it hangs":              {of(sick("a", health.Stalled, health.InHandler, reports(health.InHandler, 0, ""), history(100, 0))), health.CauseHandlerHangs, "1 of 1", nil, []string{"has not returned since 11:57:00 UTC"}},
		"cut off":               {of(sick("a", health.Stalled, health.CutOff, reports(health.CutOff, 3, "no route"))), health.CauseCutOff, "1 of 1", nil, []string{"last error: no route"}},
		"cut off, with a shard": {of(sick("a", health.NotKnown, health.LagUnknown, reports(health.ReadFailed, 3, "EOF"), func(s *health.ShardFacts) { s.CutOff = true })), health.CauseCutOff, "1 of 1", []health.Cause{health.CauseReadFails, health.CauseLagUnknown}, nil},
		"denied":                {of(sick("a", health.Stalled, health.CutOff, reports(health.CutOff, 3, "AccessDeniedException: kinesis:GetRecords"))), health.CauseDenied, "1 of 1", []health.Cause{health.CauseCutOff}, nil},
		"denied, in words": {of(sick("a", health.Stalled, health.ReadFailed, reports(health.ReadFailed, 3, refusedCall))), health.CauseDenied, "1 of 1", nil, []string{
			"kinesis:GetRecords on arn:aws:kinesis:eu-west-1:1:stream/orders to the owner of a", "1. Allow the action kinesis:GetRecords on arn:aws:kinesis:eu-west-1:1:stream/orders in the IAM"}},
		"denied, errors hidden": {with(of(sick("a", health.Stalled, health.ReadFailed, reports(health.ReadFailed, 3, refusedCall))), func(f *health.Facts) { f.HideErrors = true }), health.CauseDenied, "1 of 1", nil, []string{
			"AWS refuses kinesis:GetRecords to the owner of a since", "Allow the action kinesis:GetRecords on the stream orders"}},
		"credentials":                     {of(sick("a", health.Stalled, health.CutOff, reports(health.CutOff, 3, "Kinesis GetRecords: ExpiredTokenException: The security token included in the request is expired"))), health.CauseCredentials, "1 of 1", []health.Cause{health.CauseCutOff}, []string{"Renew the credentials of the workers"}},
		"a deleted stream":                {of(sick("a", health.NotKnown, health.LagUnknown, reports(health.ReadFailed, 3, "operation error Kinesis: GetRecords, https response error StatusCode: 400, RequestID: 95-28, ResourceNotFoundException: Stream orders not found"))), health.CauseStreamGone, "1 of 1", []health.Cause{health.CauseLagUnknown}, []string{"Cause: the stream does not exist. Kinesis does not know the stream \"orders\" since 11:57:00 UTC. If it is created again", "last error: Kinesis GetRecords: ResourceNotFoundException: Stream orders not found", "weir stream create --stream orders\n", "weir group delete --app billing\n"}},
		"a recreated stream":              {of(sick("a", health.NotKnown, health.LagUnknown, reports(health.ReadFailed, 3, "Kinesis GetShardIterator: InvalidArgumentException: StartingSequenceNumber 49 used in GetShardIterator"))), health.CausePosition, "1 of 1", []health.Cause{health.CauseLagUnknown}, []string{"the stream was deleted and created again, or the records", "wait a few seconds", "--to oldest\n"}},
		"an expired position":             {of(sick("a", health.RetentionNear, health.RecordsExpired, left(0), reports(health.ReadFailed, 3, "Kinesis GetShardIterator: InvalidArgumentException: StartingSequenceNumber 49 used in GetShardIterator"))), health.CausePosition, "1 of 1", nil, []string{"since 11:57:00 UTC: the records at the position have expired", "1. Records have expired. Continue at the oldest record: weir group reset --app billing --stream orders --shard a --to oldest\n", "2. Find out why the position is so old"}},
		"the handler names such an error": {of(sick("a", health.Stalled, health.HandlerFailed, reports(health.HandlerFailed, 3, "ResourceNotFoundException: table"))), health.CauseRecordsFail, "1 of 1", nil, nil},
		"reading fails":                   {of(sick("a", health.Stalled, health.ReadFailed, reports(health.ReadFailed, 3, "EOF"))), health.CauseReadFails, "1 of 1", nil, nil},
		"it kills":                        {of(sick("a", health.Stalled, health.Suspected, reports(health.Suspected, 0, ""))), health.CauseSuspected, "1 of 1", nil, nil},
		"no worker":                       {with(of(unread(health.NoWorker)), func(f *health.Facts) { f.Workers = 0 }), health.CauseNoWorker, "1 of 1", nil, []string{"No worker sends heartbeats", "weir doctor --app billing"}},
		"silent owner":                    {of(unread(health.OwnerSilent)), health.CauseWorkerSilent, "1 of 1", nil, []string{"2 other workers are alive", "weir group plan --app billing"}},
		"no reader":                       {of(unread(health.NoReader)), health.CauseNoReader, "1 of 1", nil, []string{"weir consume --stream=orders"}},
		"no room":                         {with(of(unread(health.NoRoom)), func(f *health.Facts) { f.Leases, f.MaxLeases = 4, 4 }), health.CauseNoRoom, "1 of 1", nil, []string{"Cause: too few workers. 2 workers hold 4 shards, and Options.MaxLeases allows 4."}},
		"not assigned":                    {with(of(unread(health.Unassigned)), func(f *health.Facts) { f.Led = false }), health.CauseUnassigned, "1 of 1", nil, []string{"none of them leads"}},
		"paused":                          {with(of(sick("a", health.Idle, health.Paused), sick("b", health.Idle, health.Paused)), func(f *health.Facts) { f.PausedApp = true }), health.CausePaused, "2 of 2", nil, []string{"idle: a of orders, 10 min behind, paused; of the others 1 idle", "while the application is paused", "weir group resume --app billing\n"}},
		"a stream is paused":              {of(well("b"), sick("a", health.Idle, health.Paused)), health.CausePaused, "1 of 1", nil, []string{"do not read the stream \"orders\" while it is paused", "weir group resume --app billing --stream orders\n"}},
		"paused by somebody": {with(of(sick("a", health.Idle, health.Paused)), func(f *health.Facts) {
			f.PausedApp, f.Pauses = true, []health.Pause{{By: "ada@laptop", At: verdictNow.Add(-time.Hour)}}
		}), health.CausePaused, "1 of 1", nil, []string{"while the application is paused; it was paused by ada@laptop at 11:00 UTC on "}},
		"a stream is paused by somebody": {with(of(sick("a", health.Idle, health.Paused)), func(f *health.Facts) {
			f.Pauses = []health.Pause{{By: "bea"}, {Stream: "orders", By: "ada"}}
		}), health.CausePaused, "1 of 1", nil, []string{"while it is paused; it was paused by ada."}},
		"parents":             {of(well("b"), sick("a", health.Idle, health.WaitsForParents)), health.CauseParents, "1 of 1", nil, nil},
		"catching up":         {of(sick("a", health.CatchingUp, health.LagFalls, caught(12*time.Minute)), sick("b", health.CatchingUp, health.LagFalls, caught(5*time.Minute))), health.NoCause, "0 of 0", nil, []string{"All records are handled in about 12 min at this rate.", "weir group lag --app billing"}},
		"one does not":        {of(sick("a", health.CatchingUp, health.LagFalls, caught(12*time.Minute)), growing("b", left(time.Hour))), health.NoCause, "0 of 0", nil, []string{"Unhandled records leave the stream in about 2 h 0 min."}},
		"they expire":         {of(sick("a", health.RetentionNear, health.RecordsExpire, left(time.Hour), history(95, 0))), health.CauseHandlerBusy, "1 of 1", nil, []string{"1. Lengthen the retention of the stream at once", "--stream-name orders --retention-period-hours 168", "leave the stream in about 1 h 0 min"}},
		"they expired":        {of(sick("a", health.RetentionNear, health.RecordsExpired, left(0))), health.CauseExpired, "1 of 1", nil, []string{"have left the stream", "weir group reset --app billing --stream orders --shard a --to oldest"}},
		"reset":               {of(sick("a", health.GoingBack, health.SetBack, history(95, 0))), health.CauseReset, "1 of 1", []health.Cause{health.CauseHandlerBusy}, nil},
		"lag unknown":         {with(of(sick("a", health.NotKnown, health.LagUnknown)), func(f *health.Facts) { f.NoLag = "no route" }), health.CauseLagUnknown, "1 of 1", nil, []string{"Kinesis: no route"}},
		"behind for a moment": {of(sick("a", health.Behind, health.BehindBriefly)), health.NoCause, "0 of 0", nil, nil},
		"store down":          {with(of(growing("a", history(95, 0))), func(f *health.Facts) { f.StoreSilent = verdictNow.Add(-time.Minute) }), health.CauseStoreSilent, "1 of 1", []health.Cause{health.CauseHandlerBusy}, []string{"unknown: the store has not answered since 11:59:00 UTC; before"}},
		"store never up":      {with(of(), func(f *health.Facts) { f.StoreSilent = verdictNow }), health.CauseStoreSilent, "0 of 0", nil, []string{"weir group list"}},
		"the worst wins":      {of(growing("a", reports(health.AwaitingMemory, 0, "")), growing("b", func(s *health.ShardFacts) { s.HandledLag = time.Hour }, history(95, 0))), health.CauseHandlerBusy, "1 of 2", []health.Cause{health.CauseMemory}, []string{"(1 of 2 affected shards)"}},
		"the worst has none":  {of(growing("a", history(95, 0)), growing("b", func(s *health.ShardFacts) { s.HandledLag = time.Hour }, history(10, 0))), health.CauseHandlerBusy, "1 of 2", nil, nil},
		"odd names": {with(of(sick("a", health.Idle, health.Paused)), func(f *health.Facts) {
			f.App, f.PausedApp = "it's mine", true
		}), health.CausePaused, "1 of 1", nil, []string{`weir group resume --app 'it'\''s mine'`}},

		"each read is throttled":               {of(sick("a", health.Stalled, health.ReadFailed, reports(health.ReadFailed, 3, "Kinesis GetRecords: ProvisionedThroughputExceededException: Rate exceeded for shard a"))), health.CauseThrottled, "1 of 1", nil, []string{"Kinesis throttles each read of the owner of a since", "Options.FanOut"}},
		"one sample of unread":                 {of(sick("a", health.Stalled, health.NoProgress, func(s *health.ShardFacts) { s.Recent = health.Recent{Minutes: 1, Unread: 1} })), health.NoCause, "0 of 0", nil, nil},
		"busy, and nothing is handled":         {of(sick("a", health.Stalled, health.NoProgress, history(92, 0)), well("b")), health.CauseHandlerHangs, "1 of 1", nil, []string{"A call of the handler of a has not returned", "(weir consume --handler-timeout=1m)"}},
		"dead letters fail, and their records": {of(sick("a", health.Stalled, health.DeadLettersFailed, reports(health.DeadLettersFailed, 3, "no such folder"))), health.CauseDeadLetters, "1 of 1", nil, nil},
	}
}

func TestAnErrorIsQuotedOnce(t *testing.T) {
	t.Parallel()
	const text = "Kinesis GetRecords: EOF"
	for name, c := range map[string]struct {
		of       health.ShardFacts
		headline bool
	}{
		"the cause quotes it":        {sick("a", health.Stalled, health.ReadFailed, reports(health.ReadFailed, 3, text)), false},
		"the cause does not":         {sick("a", health.Stalled, health.InHandler, reports(health.InHandler, 0, text)), true},
		"there is no cause to quote": {sick("a", health.Stalled, health.NoProgress, func(s *health.ShardFacts) { s.Err = text }), true},
	} {
		v := health.Conclude(of(c.of))
		if strings.Contains(v.Sentence, text) != c.headline || strings.Contains(v.Evidence, text) == c.headline {
			t.Errorf("%s: %s\n%s", name, v.Sentence, v.Evidence)
		}
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	all := verdictCases()
	named := map[health.Cause]bool{health.NoCause: true}
	for name, c := range all {
		v := health.Conclude(c.facts)
		named[v.Cause] = true
		text := strings.Join(strings.Fields(v.Text(80)), " ")
		if v.Cause != c.cause || fmt.Sprintf("%d of %d", v.Explains, v.Affected) != c.explains || !slices.Equal(v.Also, c.also) {
			t.Errorf("%s: %q of %d of %d, also %v; want %q, %s, %v\n%s", name, v.Cause, v.Explains, v.Affected, v.Also, c.cause, c.explains, c.also, v.Text(80))
		}
		for _, part := range c.says {
			if !strings.Contains(v.Text(1000), part) && !strings.Contains(text, strings.Join(strings.Fields(part), " ")) {
				t.Errorf("%s: %q is missing:\n%s", name, part, v.Text(80))
			}
		}
		if v.Cause != health.NoCause && (v.Evidence == "" || len(v.Steps) == 0) || len(v.Steps) > 3 {
			t.Errorf("%s: evidence %q, steps %v", name, v.Evidence, v.Steps)
		}
		for _, s := range v.Steps {
			if s.Do == "" || strings.HasSuffix(s.Do, ".") {
				t.Errorf("%s: step %q", name, s.Do)
			}
		}
		turned := c.facts
		turned.Shards = slices.Clone(turned.Shards)
		slices.Reverse(turned.Shards)
		if again := health.Conclude(turned); !reflect.DeepEqual(again, v) {
			t.Errorf("%s: in another order it is\n%+v, not\n%+v", name, again, v)
		}
	}
	for _, c := range health.Causes() {
		if !named[c] {
			t.Errorf("no case has the cause %q", c)
		}
	}
	if len(all) < 30 {
		t.Errorf("%d cases", len(all))
	}
}

func TestVerdictsFitTheColumns(t *testing.T) {
	t.Parallel()
	for name, c := range verdictCases() {
		v := health.Conclude(c.facts)
		for line := range strings.Lines(v.Text(80)) {
			line = strings.TrimSuffix(line, "\n")
			command := slices.ContainsFunc(v.Steps, func(s health.Step) bool { return s.Command != "" && strings.HasSuffix(line, s.Command) })
			if len([]rune(line)) > 80 && !command || strings.TrimRight(line, " ") != line {
				t.Errorf("%s: %d columns: %q", name, len([]rune(line)), line)
			}
		}
	}
}

func TestVerdictsAsJSON(t *testing.T) {
	t.Parallel()
	for name, c := range verdictCases() {
		v := health.Conclude(c.facts)
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var again health.Verdict
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatalf("%s: %v of %s", name, err, text)
		}
		if len(v.Steps) == 0 {
			v.Steps, again.Steps = nil, nil
		}
		if !reflect.DeepEqual(again, v) {
			t.Errorf("%s: %s\nis read as %+v,\nwas       %+v", name, text, again, v)
		}
	}
	if err := json.Unmarshal([]byte(`{"state":"ok","cause":"bad luck"}`), new(health.Verdict)); err == nil {
		t.Error("an unknown cause is accepted")
	}
}

// A worker serves the verdict to anyone, so errors of the user's code are left out.
func TestVerdictsHideErrors(t *testing.T) {
	t.Parallel()
	for name, c := range verdictCases() {
		for i := range c.facts.Shards {
			if s := &c.facts.Shards[i]; s.Err != "" {
				s.Err += " secret"
			}
		}
		if c.facts.NoLag != "" {
			c.facts.NoLag += " secret"
		}
		c.facts.HideErrors = true
		v := health.Conclude(c.facts)
		if text, err := json.Marshal(v); err != nil || strings.Contains(string(text)+v.Text(80), "secret") {
			t.Errorf("%s: %s, %v", name, text, err)
		}
		if v.Cause != c.cause {
			t.Errorf("%s: without errors the cause is %q, want %q", name, v.Cause, c.cause)
		}
	}
}

func TestRecentIsAMean(t *testing.T) {
	t.Parallel()
	var r health.Recent
	for _, busy := range []int{100, 90, 80} {
		r = r.Add(busy, busy/10, busy > 85, false)
	}
	if want := (health.Recent{Minutes: 3, Busy: 90, Throttled: 9, Failing: 2}); r != want {
		t.Errorf("%+v, want %+v", r, want)
	}
}
