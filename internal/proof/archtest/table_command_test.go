package archtest

// commandUses lists the packages outside of cmd/weir that the command may use.
var commandUses = []string{
	"internal/errtext", "internal/lettertext",
	".", "shard", "lease", "aggregate", "dashboard", "deadletter/...", "emfweir", "event", "filter",
	"health", "lambda", "payload/...", "producer", "promweir", "provision", "queue", "store/...", "sink/...", "kinesistest",
	"internal/fanout", "internal/change", "internal/dump", "internal/foreign", "internal/hostcheck", "internal/kcl/...",
	"internal/observe", "internal/queuestate",
	"internal/operate", "internal/streams", "internal/wire",
}

// commandRows lists packages below cmd/weir/internal. Shared packages do not import commands, and
// commands rarely import each other. For packages without a row here, the row cmd/weir/... applies.
var commandRows = []row{
	commandRow("redact", "takes passwords out of texts"),
	commandRow("figures", "writes numbers for people"),
	commandRow("explain", "turns errors into a sentence", "redact"),
	commandRow("peers", "watches the services and stores that a command asks", "explain"),
	commandRow("cli", "what all commands share: terminal, flags, help, errors, output", "explain", "figures", "peers", "redact"),
	commandRow("serve", "serves over HTTP at the address of a flag", "cli"),
	commandRow("codecs", "codecs of payloads, by the flags for them", "cli"),
	commandRow("awsconf", "clients of AWS, by the flags for them", "cli", "explain", "peers", "redact", "wholebody"),
	commandRow("stores", "opens --store", "awsconf", "cli", "explain", "peers", "redact", "serverstore", "sqlitefile"),
	commandRow("target", "the application that a command is about", "awsconf", "cli", "figures", "stores"),
	commandRow("oldside", "finds workers of the KCL that run after a move", "explain"),
	commandRow("shardlag", "asks how far shards are behind", "cli", "explain"),
	commandRow("records", "chooses and prints records", "awsconf", "cli"),
	commandRow("queues", "finds the queue that a command is about, and reads its dead letters", "awsconf", "cli", "explain"),
	commandRow("deadletters", "opens --dead", "awsconf", "cli", "explain", "peers", "redact", "serverstore", "sqlitefile"),
	commandRow("shellexec", "runs the command of --exec", "cli", "records"),
	commandRow("fanout", "weir fanout", "awsconf", "cli"),
	commandRow("stream", "weir stream", "awsconf", "cli"),
	commandRow("put", "weir put", "awsconf", "cli", "codecs", "explain", "figures"),
	commandRow("bench", "weir bench", "awsconf", "cli", "explain", "figures", "records"),
	commandRow("tail", "weir tail", "awsconf", "cli", "codecs", "explain", "fanout", "records"),
	commandRow("local", "weir local", "cli", "serve"),
	commandRow("demo", "weir demo", "cli", "fanout", "figures", "judge", "put", "shardlag", "sqlitefile"),
	commandRow("group", "weir group", "awsconf", "cli", "explain", "figures", "records", "shardlag", "stores", "target"),
	commandRow("migrate", "weir migrate", "awsconf", "cli", "explain", "figures", "oldside", "records", "redact", "serverstore", "shardlag", "stores", "target"),
	commandRow("doctor", "weir doctor", "awsconf", "cli", "explain", "fanout", "figures", "oldside", "queues", "shardlag", "stores", "target"),
	commandRow("queuecmd", "weir queue", "awsconf", "cli", "consume", "dead", "deadletters", "explain", "figures", "queues", "records"),
	commandRow("dead", "weir dead", "awsconf", "cli", "codecs", "deadletters", "explain", "figures", "records", "shellexec"),
	commandRow("dashboard", "weir dashboard", "awsconf", "cli", "codecs", "dead", "deadletters", "queues", "serve", "shardlag", "shellexec", "stores", "target"),
	commandRow("exporter", "weir exporter", "awsconf", "cli", "explain", "serve", "shardlag", "stores", "target"),
	commandRow("multilang", "weir multilang", "awsconf", "cli", "explain", "oldside", "peers", "shellexec", "stores"),
	commandRow("consume", "weir consume", "awsconf", "cli", "codecs", "deadletters", "explain", "fanout", "figures", "oldside", "peers", "queues", "records", "redact", "serve", "shardlag", "shellexec", "stores", "stream"),
}

// commandRow returns the row of a package below cmd/weir/internal. others are the packages there
// that it may import.
func commandRow(pkg, why string, others ...string) row {
	r := row{pkg: "cmd/weir/internal/" + pkg, why: why, ours: commandUses[:len(commandUses):len(commandUses)], tests: []string{"cmd/weir/...", "internal/proof/fakes3"}, sdk: true}
	for _, o := range others {
		r.ours = append(r.ours, "cmd/weir/internal/"+o)
	}
	return r
}
