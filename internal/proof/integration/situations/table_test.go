package situations_test

import (
	"bytes"
	"strings"
	"time"

	"github.com/weir-go/weir/health"
)

// situations returns the table.
func situations() []situation {
	kib := bytes.Repeat([]byte{'x'}, 1000)
	return []situation{
		{
			app: "slow-handler", name: "slow handler", made: "the handler takes a second for each record, and three records a second arrive in each of two shards",
			shards: 2, create: func(s *scene) {
				s.worker("worker-1", "--batch=1", "--exec=cat >/dev/null; sleep 1")
				s.ready(2)
				s.wait(8 * time.Second)
				s.happens()
				s.produce(time.Second/3, kib, s.all()...)
			},
			state: health.FallingBehind, cause: health.CauseHandlerBusy,
			shown: "Handle the partition keys of each shard in parallel with Options.Concurrency.Keys (weir consume --parallel=16)",
			steps: []string{"Handle the partition keys of each shard in parallel", "Start more workers: N worker is alive, for N shards", "Make the handler faster"},
			from:  10 * time.Second, to: 25 * time.Second, livez: true,
			alerts: []string{"WeirLagGrowing", "WeirLagHigh"},
			logs:   []string{`records wait for a long time.*cause="the handler is busy.*step="Handle the partition keys`},
		},
		{
			app: "poison-record", name: "poison record", made: "the handler fails at one record, and nothing limits its attempts",
			shards: 2, create: func(s *scene) {
				s.worker("worker-1", "--exec=! grep -q poison")
				s.ready(2)
				s.wait(8 * time.Second)
				s.happens()
				s.put(0, []byte("poison"))
				s.produce(time.Second, kib, s.all()...)
			},
			state: health.Stalled, cause: health.CauseRecordsFail,
			shown: "See the failing record and its error: weir doctor --app poison-record",
			steps: []string{"See the failing record and its error: weir doctor", "Fix the handler, or dead-letter such records with Options.OnFailure.MaxAttempts"},
			to:    2 * time.Second, livez: true,
			alerts:  []string{"WeirHandlerFailing", "WeirLagGrowing", "WeirLagHigh", "WeirShardStalled"},
			logs:    []string{`the handler failed; its unfinished records will be handled again`, `records wait for a long time.*state=stalled.*cause="records fail.*step="See the failing record and its error: weir doctor`},
			metrics: []string{`weir_handler_failures_total\{app="APP".* [1-9]`},
		},
		{
			app: "paused", name: "paused", made: "`weir group pause`",
			shards: 2, create: func(s *scene) {
				s.worker("worker-1", "--exec=cat >/dev/null")
				s.ready(2)
				s.produce(time.Second, kib, s.all()...)
				s.wait(10 * time.Second)
				s.happens()
				s.run("weir group pause --app " + s.app)
			},
			state: health.Idle, cause: health.CausePaused,
			steps:   []string{"Resume the application when it may continue: weir group resume --app paused"},
			to:      3 * time.Second,
			logs:    []string{`an operator has paused the application`, `lease ended.*reason=`},
			metrics: []string{`weir_paused\{app="APP",stream="APP"\} 1`},
		},
		{
			app: "stopped", name: "stopped", made: "the only worker gets SIGTERM",
			shards: 2, create: func(s *scene) {
				p := s.worker("worker-1", "--exec=cat >/dev/null")
				s.ready(2)
				s.produce(time.Second, kib, s.all()...)
				s.wait(10 * time.Second)
				s.happens()
				p.stop()
			},
			state: health.Unread, cause: health.CauseNoWorker,
			steps:   []string{"Start a worker of the application", "Find out how the last worker ended: weir doctor"},
			to:      3 * time.Second,
			alerts:  []string{"WeirLagGrowing", "WeirLagHigh", "WeirNoLeader", "WeirUnread"},
			logs:    []string{`the worker has stopped; its progress is saved`},
			metrics: []string{`weir_workers\{app="APP"\} 0`, `weir_leases_unheld\{app="APP",stream="APP"\} 2`},
		},
		{
			app: "hanging-handler", name: "hanging handler", made: "a call of the handler does not return",
			shards: 2, create: func(s *scene) {
				s.worker("worker-1", "--exec=! grep -q hang || sleep 10000")
				s.ready(2)
				s.wait(8 * time.Second)
				s.happens()
				s.put(0, []byte("hang"))
				s.produce(time.Second, kib, s.all()...)
			},
			state: health.Stalled, cause: health.CauseHandlerHangs,
			steps: []string{"Find out what the handler waits for, such as a database", "Limit its calls with Options.Timing.HandlerTimeout"},
			to:    2 * time.Second, livez: true,
			alerts: []string{"WeirLagGrowing", "WeirLagHigh", "WeirShardStalled"},
			logs:   []string{`records wait for a long time.*state=stalled.*cause="the handler does not return.*step="Find out what the handler waits for`},
		},
		{
			app: "dead-worker", name: "dead worker", made: "one of two workers gets SIGKILL, and the other worker has room for its shards",
			shards: 4, create: func(s *scene) {
				a := s.worker("worker-1", "--exec=cat >/dev/null")
				s.ready(4)
				b := s.worker("worker-2", "--exec=cat >/dev/null")
				s.balanced(a, b, 2)
				s.produce(time.Second, kib, s.all()...)
				s.wait(10 * time.Second)
				s.happens()
				b.kill()
				s.ready(4)
			},
			state: health.OK, cause: health.NoCause, timeless: true, livez: true,
			logs:  []string{`a worker has died, because its heartbeats have stopped.*other_worker=worker-2.*shards=2`, `lease taken.*died=1`},
			pages: []string{"Workers that died lately"},
		},
		{
			app: "dead-leader", name: "dead leader", made: "the leader of two workers gets SIGKILL",
			shards: 4, create: func(s *scene) {
				a := s.worker("worker-1", "--exec=cat >/dev/null")
				s.ready(4)
				b := s.worker("worker-2", "--exec=cat >/dev/null")
				s.balanced(a, b, 2)
				s.produce(time.Second, kib, s.all()...)
				s.wait(10 * time.Second)
				s.happens()
				a.kill()
				s.ready(4)
			},
			state: health.OK, cause: health.NoCause, timeless: true, livez: true,
			logs:    []string{`a worker has died, because its heartbeats have stopped.*other_worker=worker-1.*shards=2`, `lease taken.*died=1`},
			metrics: []string{`weir_leader\{app="APP"\} 1`, `weir_led\{app="APP"\} 1`},
			pages:   []string{"Workers that died lately", "worker-2 <span class=\"tag\">leads</span>"},
		},
		{
			app: "too-few-workers", name: "too few workers", made: "one of two workers gets SIGKILL, and `--max-leases` of the other worker allows no more shards",
			shards: 4, create: func(s *scene) {
				a := s.worker("worker-1", "--exec=cat >/dev/null", "--max-leases=2")
				b := s.worker("worker-2", "--exec=cat >/dev/null", "--max-leases=2")
				s.balanced(a, b, 2)
				s.produce(time.Second, kib, s.all()...)
				s.wait(80 * time.Second) // until the history has samples
				s.happens()
				b.kill()
			},
			state: health.Unread, cause: health.CauseNoRoom,
			steps:   []string{"Start more workers", "Or raise Options.MaxLeases", "If a worker died, find out why: weir doctor"},
			to:      3 * time.Second,
			alerts:  []string{"WeirLagGrowing", "WeirLagHigh", "WeirUnread"},
			logs:    []string{`a worker has died, because its heartbeats have stopped.*other_worker=worker-2`, `no worker has room for some shards.*shards=2`},
			metrics: []string{`weir_leases_unheld\{app="APP",stream="APP"\} 2`},
			pages:   []string{"Workers that died lately"},
		},
		{
			app: "wrong-streams", name: "wrong streams", made: "the worker is replaced by one that reads another stream",
			shards: 2, create: func(s *scene) {
				p := s.worker("worker-1", "--exec=cat >/dev/null")
				s.ready(2)
				s.produce(time.Second, kib, s.all()...)
				s.stream(s.app+"-2", 1)
				s.wait(10 * time.Second)
				s.happens()
				p.stop()
				s.worker("worker-2", "--stream="+s.app+"-2", "--exec=cat >/dev/null")
			},
			state: health.Unread, cause: health.CauseNoReader,
			steps:   []string{"Add the stream to Options.Streams of the workers (weir consume --stream=wrong-streams)", "See which streams the workers read: weir group describe"},
			to:      3 * time.Second,
			alerts:  []string{"WeirLagGrowing", "WeirLagHigh", "WeirUnread"},
			logs:    []string{`no live worker reads a stream although the application has leases for it`},
			metrics: []string{`weir_leases_unheld\{app="APP",stream="APP"\} 2`},
		},
		{
			app: "hot-shard", name: "hot shard", made: "one of four shards gets 20 times as many records as the others, which is more than its handler can handle",
			shards: 4, create: func(s *scene) {
				s.worker("worker-1", "--batch=1", "--exec=cat >/dev/null; sleep .3")
				s.ready(4)
				s.wait(8 * time.Second)
				s.happens()
				s.produce(time.Second/10, bytes.Repeat(kib, 10), 0)
				s.produce(2*time.Second, bytes.Repeat(kib, 10), 1, 2, 3)
			},
			state: health.FallingBehind, cause: health.CauseHotShard,
			shown: "Handle its partition keys in parallel with Options.Concurrency.Keys (weir consume --parallel=16)",
			steps: []string{"Handle its partition keys in parallel", "Spread the load over more partition keys, or split the shard"},
			from:  10 * time.Second, to: 25 * time.Second,
			alerts: []string{"WeirLagGrowing", "WeirLagHigh"},
			logs:   []string{`records wait for a long time.*cause="one shard is hot.*step="Handle its partition keys`},
		},
		{
			app: "dead-letters-fail", name: "dead letters cannot be stored", made: "the handler rejects a record, and the file of dead letters is in a folder that does not exist",
			shards: 2, create: func(s *scene) {
				dir := s.t.TempDir() + "/gone"
				s.dead = "file:" + dir + "/dead.ndjson"
				s.mkdir(dir)
				s.worker("worker-1", "--max-attempts=1", "--outage-grace=0s", "--dead="+s.dead, "--exec=! grep -q poison")
				s.ready(2)
				s.remove(dir)
				s.wait(8 * time.Second)
				s.happens()
				s.put(0, []byte("poison"))
				s.produce(time.Second, kib, s.all()...)
			},
			state: health.Stalled, cause: health.CauseDeadLetters, refused: `there is no file`,
			shown: "Repair the destination of dead letters (Options.OnFailure.Destination), and test it: weir dead list --app dead-letters-fail",
			steps: []string{"Repair the destination of dead letters (Options.OnFailure.Destination), and test it: weir dead list"},
			to:    3 * time.Second, livez: true,
			alerts: []string{"WeirDeadLetters", "WeirLagGrowing", "WeirLagHigh", "WeirShardStalled"},
			logs:   []string{`dead letters could not be stored; weir retries`},
		},
		{
			app: "store-down", name: "store down", made: "the Redis server of the store gets SIGSTOP",
			shards: 2, own: true, server: true, create: func(s *scene) {
				s.worker("worker-1", "--exec=cat >/dev/null")
				s.ready(2)
				s.produce(time.Second, kib, s.all()...)
				s.wait(40 * time.Second) // until the page has listed the application
				s.happens()
				s.server.Suspend()
			},
			state: health.NotKnown, cause: health.CauseStoreSilent, unlooked: true, refused: `did not answer|no answer|not answer`,
			steps:   []string{"Check the store and the network; this command shows the error: weir group list"},
			to:      3 * time.Second,
			alerts:  []string{"WeirNoLeader", "WeirStoreDown"},
			logs:    []string{`the store does not answer; reading continues while the leases are valid`},
			metrics: []string{`weir_up\{app="APP"\} 0`},
			pages:   []string{"has not answered since"},
		},
		{
			app: "kinesis-down", name: "Kinesis down", made: "all connections to Kinesis are closed, those of the worker and those of the tools",
			shards: 2, own: true, create: func(s *scene) {
				s.worker("worker-1", "--exec=cat >/dev/null")
				s.ready(2)
				s.produce(time.Second, kib, s.all()...)
				s.wait(20 * time.Second)
				s.happens()
				s.calls.cut()
				s.observers.cut()
			},
			state: health.Stalled, cause: health.CauseCutOff,
			steps:  []string{"Check the network between the workers and Kinesis", "See whether Kinesis answers this machine: weir doctor"},
			to:     10 * time.Second,
			alerts: []string{"WeirLagGrowing", "WeirLagHigh", "WeirShardStalled"},
			logs:   []string{`this worker cannot read from any stream`, `reading a shard fails repeatedly`},
			pages:  []string{"Kinesis"},
		},
		{
			app: "throttled", name: "throttled", made: "Kinesis answers each read with ProvisionedThroughputExceededException",
			shards: 2, create: func(s *scene) {
				s.worker("worker-1", "--exec=cat >/dev/null")
				s.ready(2)
				s.produce(time.Second, kib, s.all()...)
				s.wait(10 * time.Second)
				s.happens()
				s.calls.fail(func(action, _ string) fault {
					if action != "GetRecords" {
						return fault{}
					}
					return fault{code: "ProvisionedThroughputExceededException", text: "Rate exceeded for shard shardId-000000000000 in stream throttled under account 000000000000."}
				})
			},
			state: health.Stalled, cause: health.CauseThrottled,
			shown:  "Read by enhanced fan-out with Options.FanOut (weir consume --fan-out=register), which has its own throughput",
			steps:  []string{"Read by enhanced fan-out with Options.FanOut", "Or find the other readers of the stream"},
			to:     5 * time.Second,
			alerts: []string{"WeirLagGrowing", "WeirLagHigh", "WeirShardStalled", "WeirThrottled"},
		},
		{
			app: "no-memory", name: "waiting for memory", made: "24 shards have large records, the handler takes 50 s for each, and `--max-memory` has no room for a record of each shard",
			shards: 24, create: func(s *scene) {
				s.worker("worker-1", "--exec=cat >/dev/null; sleep 50", "--batch=1", "--max-memory=16MiB")
				s.ready(24)
				s.wait(8 * time.Second)
				s.happens()
				for i := range 24 * 8 {
					s.put(i%24, bytes.Repeat(kib, 1000))
				}
			},
			state: health.FallingBehind, cause: health.CauseMemory,
			steps: []string{"Make the handler faster", "Raise Options.MaxMemory (weir consume --max-memory=1GiB)", "Or start more workers"},
			from:  10 * time.Second, to: 20 * time.Second,
			alerts: []string{"WeirLagGrowing", "WeirLagHigh"},
			logs:   []string{`a shard waits for memory`},
		},
		{
			app: "expired", name: "records expired", made: "the checkpoint of a shard is moved to a record that left the stream a day ago, and Kinesis refuses the position",
			shards: 2, own: true, create: func(s *scene) {
				p := s.worker("worker-1", "--exec=cat >/dev/null")
				s.ready(2)
				s.produce(time.Second, kib, s.all()...)
				s.wait(5 * time.Second)
				p.stop()
				old := s.older()
				s.run("weir group reset --app " + s.app + " --stream " + s.app + " --shard shardId-000000000000 --to " + old + " --yes")
				refuse := func(action, body string) fault {
					if action != "GetShardIterator" || !strings.Contains(body, old) {
						return fault{}
					}
					return fault{code: "InvalidArgumentException", text: "StartingSequenceNumber " + old + " used in GetShardIterator on shard shardId-000000000000 in stream expired under account 000000000000 is invalid."}
				}
				s.calls.fail(refuse)
				s.observers.fail(refuse)
				s.happens()
				s.worker("worker-2", "--exec=cat >/dev/null")
			},
			state: health.RetentionNear, cause: health.CausePosition, timeless: true, livez: true,
			shown:  "Records have expired. Continue at the oldest record: weir group reset --app expired --stream expired --shard shardId-000000000000 --to oldest",
			steps:  []string{"Records have expired. Continue at the oldest record: weir group reset", "Find out why the position is so old"},
			alerts: []string{"WeirLagGrowing", "WeirLagHigh", "WeirRetentionNear"},
			logs:   []string{`the service refuses the position of a shard, so it is not read`},
		},
		{
			app: "retention-near", name: "near the end of retention", made: "the handler is slow, the stream keeps records for 24 h, and Kinesis says that the unhandled ones are 13 h old",
			shards: 1, own: true, create: func(s *scene) {
				s.worker("worker-1", "--batch=1", "--exec=cat >/dev/null; sleep 1")
				s.ready(1)
				s.produce(time.Second/3, kib, 0)
				s.happens()
				old := func(string, string) fault { return fault{age: 13 * time.Hour} }
				s.calls.fail(old)
				s.observers.fail(old)
			},
			state: health.RetentionNear, cause: health.CauseHandlerBusy, timeless: true,
			shown:  "Lengthen the retention of the stream at once: aws kinesis increase-stream-retention-period --stream-name retention-near --retention-period-hours 168",
			steps:  []string{"Lengthen the retention of the stream at once: aws kinesis increase-stream-retention-period --stream-name retention-near", "Handle the partition keys of each shard in parallel", "Make the handler faster"},
			alerts: []string{"WeirLagGrowing", "WeirLagHigh", "WeirRetentionNear"},
		},
		{
			app: "access-denied", name: "access denied", made: "Kinesis answers each read of the worker with AccessDeniedException",
			shards: 2, create: func(s *scene) {
				s.worker("worker-1", "--exec=cat >/dev/null")
				s.ready(2)
				s.produce(time.Second, kib, s.all()...)
				s.wait(10 * time.Second)
				s.happens()
				s.calls.fail(func(action, _ string) fault {
					if action != "GetRecords" && action != "GetShardIterator" {
						return fault{}
					}
					return fault{code: "AccessDeniedException", text: "User: arn:aws:sts::000000000000:assumed-role/workers/i-1 is not authorized to perform: kinesis:" + action + " on resource: arn:aws:kinesis:eu-central-1:000000000000:stream/access-denied because no identity-based policy allows the kinesis:" + action + " action"}
				})
			},
			state: health.Stalled, cause: health.CauseDenied,
			livez:  true,
			shown:  "Allow the action kinesis:GetRecords on arn:aws:kinesis:eu-central-1:000000000000:stream/access-denied in the IAM policy of the workers",
			steps:  []string{"Allow the action kinesis:Get", "See whether this machine may make the call: weir doctor"},
			to:     5 * time.Second,
			alerts: []string{"WeirLagGrowing", "WeirLagHigh", "WeirShardStalled"},
			logs:   []string{`this worker cannot read from any stream`},
		},
		{
			app: "deleted", name: "stream deleted", made: "the stream is deleted",
			shards: 2, create: func(s *scene) {
				s.worker("worker-1", "--exec=cat >/dev/null")
				s.ready(2)
				s.produce(time.Second, kib, s.all()...)
				s.wait(10 * time.Second)
				s.happens()
				s.delete()
			},
			state: health.Stalled, cause: health.CauseStreamGone,
			shown: "If it should exist, check the account and the region of the workers, or create it: weir stream create --stream deleted --shards 2",
			steps: []string{
				"If it should exist, check the account and the region of the workers, or create it: weir stream create --stream deleted --shards N",
				"If it was deleted for good, remove it from Options.Streams of the workers",
			},
			to:     5 * time.Second,
			alerts: []string{"WeirLagGrowing", "WeirLagHigh", "WeirShardStalled"},
			logs:   []string{`the stream no longer exists; reading resumes when it exists again`},
		},
		{
			app: "recreated", name: "stream recreated", made: "the stream is deleted and created again",
			shards: 2, create: func(s *scene) {
				s.worker("worker-1", "--exec=cat >/dev/null")
				s.ready(2)
				s.produce(time.Second, kib, s.all()...)
				s.wait(10 * time.Second)
				s.happens()
				s.delete()
				s.stream(s.app, 2)
			},
			state: health.OK, cause: health.NoCause, timeless: true, livez: true,
			alerts: []string{"WeirPositionExpired"},
			logs:   []string{`the stream was deleted and created again; its progress is discarded, and it is read from its beginning`},
		},
	}
}
