package main

import (
	"strings"

	"github.com/weir-go/weir/internal/wronginput"
)

func wrongCommands(p *wrongPlace) []wronginput.Input {
	return under("command",
		misused("an unknown command", "bogus", `unknown command "bogus"`),
		misused("an unknown flag of weir", "--bogus", "unknown flag: --bogus"),
		misused("an unknown command of group", "group bogus", `unknown command "bogus"`),
		misused("an unknown command of store", "store drop", `unknown command "drop"`),
		misused("an unknown command of fanout", "fanout bogus", `unknown command "bogus"`),
		misused("an unknown short flag", "tail -x", "unknown shorthand flag"),
		misused("a flag of another command", "tail --stream s --exec cat "+p.endpoint, "unknown flag: --exec"),
		misused("a word too many", "tail --stream s x", `weir tail takes no argument "x"`),
		misused("a word after version", "version x", `"x"`),
		misused("an unknown format of version", "version -o yaml", "use text or json"),
		misused("help about a command that is not there", "help bogus", "bogus"),
		misused("a shell that nobody knows", "completion csh", `"csh"`),
	)
}

func wrongStreamFlags(p *wrongPlace) []wronginput.Input {
	long := strings.Repeat("x", 129)
	return append(under("put",
		misused("no stream", "put "+p.records, "weir put needs --stream"),
		misused("a stream name with a slash", "put --stream a/b "+p.endpoint+" "+p.records, `--stream "a/b"`, "1 to 128"),
		misused("a stream name that is too long", "put --stream "+long+" "+p.endpoint+" "+p.records, "--stream", "1 to 128"),
		misused("two files", "put --stream s "+p.records+" "+p.records, "one FILE"),
		misused("shards without create", "put --stream s --shards 2 "+p.endpoint+" "+p.records, "--shards is for --create"),
		misused("shards that are no number", "put --stream s --create --shards two "+p.endpoint+" "+p.records, `--shards "two": want a whole number`),
		misused("too many shards", "put --stream s --create --shards 10001 "+p.endpoint+" "+p.records, "--shards 10001", "1 to 10000"),
		misused("shards beyond all numbers", "put --stream s --create --shards 99999999999 "+p.endpoint+" "+p.records, "too large"),
		misused("no shards", "put --stream s --create --shards 0 "+p.endpoint+" "+p.records, "--shards 0", "1 to 10000"),
		misused("negative shards", "put --stream s --create --shards -1 "+p.endpoint+" "+p.records, "--shards -1", "1 to 10000"),
		misused("an unknown format", "put --stream s -o xml "+p.endpoint+" "+p.records, "use text or json"),
		misused("a switch with a value that is none", "put --stream s --create=maybe "+p.endpoint+" "+p.records, `--create "maybe": want true or false`),
	), under("tail",
		misused("no stream", "tail", "weir tail needs --stream"),
		misused("a negative limit", "tail --stream s --limit -1 "+p.endpoint, "--limit -1"),
		misused("a limit that is no number", "tail --stream s --limit ten "+p.endpoint, `--limit "ten": want a whole number`),
		misused("an unknown place to start", "tail --stream s --from yesterday "+p.endpoint, `--from "yesterday"`, "oldest"),
		misused("a start in the future", "tail --stream s --from 2200-01-01T00:00:00Z "+p.endpoint, "future"),
		misused("a negative time ago", "tail --stream s --from -5m "+p.endpoint, "--from"),
		misused("more than all of the reads", "tail --stream s --read-share 2 "+p.endpoint, "--read-share 2", "0.01"),
		misused("a share that is no number", "tail --stream s --read-share half "+p.endpoint, `--read-share "half": want a number`),
		misused("registering nobody", "tail --stream s --register "+p.endpoint, "--register", "--fan-out"),
		misused("keeping what is not registered", "tail --stream s --fan-out me --keep "+p.endpoint, "--keep", "--register"),
		misused("a consumer's name that cannot be", "tail --stream s --fan-out a/b "+p.endpoint, "a/b"),
		misused("an ARN that is none", "tail --stream arn:aws:kinesis:x "+p.endpoint, "arn:aws:kinesis:x"),
		fails("a shard that is none", "tail --stream s --shard one "+p.endpoint, "no shard one", "it has shardId-000000000000"),
		fails("a shard that is not there", "tail --stream s --shard shardId-000000000009 "+p.endpoint, "no shard", "shardId-000000000009"),
		fails("a stream that is not there", "tail --stream none "+p.endpoint, "there is no such stream", "--stream"),
	)...)
}

func wrongConsumeFlags(p *wrongPlace) []wronginput.Input {
	consume := "consume --stream s --app a --store memory: " + p.endpoint
	return under("consume",
		misused("no stream, app and store", "consume", "--stream", "--app", "--store", "WEIR_STORE"),
		misused("no app", "consume --stream s --store memory: "+p.endpoint, "needs --app"),
		misused("an app with a slash", "consume --stream s --app a/b --store memory: "+p.endpoint, `--app "a/b"`),
		misused("a store without kind", "consume --stream s --app a --store here "+p.endpoint, `"here"`, "sqlite:PATH"),
		misused("a store of a kind that is not there", "consume --stream s --app a --store oracle://db "+p.endpoint, "oracle", "sqlite:PATH"),
		misused("a file without a path", "consume --stream s --app a --store sqlite: "+p.endpoint, "names no file"),
		misused("a table with a short name", "consume --stream s --app a --store dynamodb:x "+p.endpoint, "3 to 255"),
		misused("something after memory", "consume --stream s --app a --store memory:x "+p.endpoint, "memory:"),
		with(misused("a store in the environment that is none", "consume --stream s --app a "+p.endpoint, "WEIR_STORE", `"here"`), "WEIR_STORE=here"),
		misused("a batch of nothing", consume+" --batch 0", "--batch 0"),
		misused("a batch that is too large", consume+" --batch 10001", "--batch 10001"),
		misused("a time to stop without unit", consume+" --stop-timeout 30", `--stop-timeout "30": want a time with its unit`),
		misused("a negative time to stop", consume+" --stop-timeout -1s", "--stop-timeout -1s"),
		misused("a time to handle that is too short", consume+" --handler-timeout 1ms", "--handler-timeout 1ms"),
		misused("no way out", consume+" --expired never", "use fail, oldest or latest"),
		misused("a share of nothing", consume+" --read-share 0", "--read-share 0"),
		misused("a health address that is none", consume+" --health here", "--health", "here"),
		misused("a worker with a long name", consume+" --worker "+strings.Repeat("w", 201), "--worker"),
		misused("a start that is no time", consume+" --from 2026-13-01T00:00:00Z", "--from", "2026-13-01"),
		misused("an ARN of another region", "consume --stream arn:aws:kinesis:eu-west-1:000000000000:stream/s --app a --store memory: "+p.endpoint, "eu-west-1"),
		misused("a file as an argument", consume+" "+p.records, p.records),
	)
}

func wrongAppFlags(p *wrongPlace) []wronginput.Input {
	return append(under("group",
		misused("neither app nor store", "group describe", "needs --app and --store"),
		misused("a look into memory", "group describe --app a --store memory:", "nobody else can look"),
		misused("an app with a long name", "group lag --app "+strings.Repeat("x", 256)+" "+p.store, "application's name"),
		misused("a lag below nothing", "group lag --app a --max -1m "+p.store, "--max -1m"),
		misused("a lag without unit", "group lag --app a --max 5 "+p.store, "with its unit"),
		misused("no worker to drain", "group drain --app a "+p.store, "needs one WORKER"),
		misused("a negative wait", "group pause --app a --wait -1s "+p.store, "--wait -1s"),
		misused("no place to reset to", "group reset --app a --yes "+p.store, "needs --to"),
		misused("a place to reset to that is none", "group reset --app a --to yesterday --yes "+p.store, `--to "yesterday"`),
		misused("a number without a shard", "group reset --app a --to 17 --yes "+p.store, "--shard"),
		misused("nobody who says yes", "group reset --app a --to oldest "+p.store, "--yes"),
		misused("nobody who says yes to deleting", "group delete --app a "+p.store, "--yes"),
		misused("no file to export to", "group export --app a "+p.store, "needs one FILE"),
		misused("two files to import", "group import --app a --yes "+p.store+" x y", "needs one FILE"),
		misused("an answer and a file from one pipe", "group import --app a "+p.store+" -", "--yes"),
		misused("an app that no worker can have", "group import --app a/b --yes "+p.store+" -", `--app "a/b"`),
		fails("an app that is not there", "group describe --app none "+p.store, "there is no application none", "weir group list"),
		fails("a worker that is not there", "group drain --app a "+p.store+" w9", "w9"),
		fails("a stream that the app does not have", "group reset --app a --stream none --to oldest --yes "+p.store+" "+p.endpoint, "no such stream"),
		fails("a reset to the future", "group reset --app a --stream s --to 2200-01-01T00:00:00Z --yes "+p.store+" "+p.endpoint, "future"),
	), under("doctor, store, fanout",
		misused("no store for doctor", "doctor --app a", "needs --store"),
		misused("a watch that is too long", "doctor --app a --watch 6m "+p.store, "--watch 6m"),
		misused("doctor and memory", "doctor --app a --store memory:", "nobody else can look"),
		fails("doctor for an app that is not there", "doctor --app none "+p.store+" "+p.endpoint, "there is no application none"),
		misused("no store to create", "store create", "needs --store"),
		misused("memory to create", "store create --store memory:", "nothing to create"),
		misused("a version without print", "store create --since 1 "+p.store, "--since is for --print"),
		misused("statements for a file", "store create --print "+p.store, "--print"),
		misused("a prefix that is none", "store create --print --store postgres://u@h/d?weir_prefix=9", "weir_prefix"),
		misused("a URL without a host", "group list --store postgres:///d", "postgres:///d"),
		misused("a URL with an unknown setting", "group list --store redis://h:6379?weir_prefx=a", "weir_prefx"),
		misused("sentinels without a name", "group list --store redis-sentinel://h:26379", "master_name"),
		misused("fan-out without a stream", "fanout list", "needs --stream"),
		misused("fan-out of a stream with a slash", "fanout remove --name a --yes --stream a/b "+p.endpoint, `--stream "a/b"`),
		misused("nobody who says yes to removing", "fanout remove --name a --stream s "+p.endpoint, "--yes"),
		misused("doctor for a stream with a slash", "doctor --app a --stream a/b "+p.store+" "+p.endpoint, `"a/b"`),
		misused("a reset of a stream with a slash", "group reset --app a --stream a/b --to oldest --yes "+p.store+" "+p.endpoint, `"a/b"`),
	)...)
}

func wrongLocalFlags(p *wrongPlace) []wronginput.Input {
	return append(under("local",
		misused("an address that is none", "local --addr here", `--addr "here"`),
		misused("a port that is none", "local --addr 127.0.0.1:99999", "99999"),
		misused("a stream without shards", "local --addr 127.0.0.1:0 --stream a:0", `--stream "a:0"`),
		misused("a stream that is none", "local --addr 127.0.0.1:0 --stream a:b", `--stream "a:b"`),
		misused("a host with a port", "local --host kinesis:4567", `--host "kinesis:4567"`),
		misused("a certificate without TLS", "local --ca-file x", "--ca-file is for --tls"),
		misused("an account that is too short", "local --account 12", "--account"),
		misused("a negative delay", "local --state-delay -1s", "--state-delay"),
		misused("a limit of nothing", "local --shard-limit -1", "--shard-limit"),
		fails("an address of others", "local --addr 192.0.2.1:4567", "this machine has no address 192.0.2.1:4567"),
	), under("demo",
		with(fails("a temporary directory that is not there", "demo --plain", "none"), "TMPDIR="+p.path("none")),
		misused("a victim that nobody is", "demo --kill all", "say leader or other"),
		misused("too many flights", "demo --flights 20001", "--flights 20001"),
		misused("too few shards", "demo --shards 2", "--shards 2"),
		misused("too short", "demo --duration 1s", "--duration 1s"),
	)...)
}
