package main

import (
	"strings"
	"time"

	"github.com/weir-go/weir/internal/proof/wronginput"
)

// wrongSilence returns inputs with servers that accept connections and never answer. Commands must
// print a message within ten seconds, and end after --connect-timeout.
func wrongSilence(p *wrongPlace) []wronginput.Input {
	silent := talking(p.t, "", true)
	const patience = 7 * time.Second
	waits := func(name, args string, says ...string) wronginput.Input {
		in := fails(name, strings.ReplaceAll(args, "SILENT", silent)+" --connect-timeout "+patience.String(),
			append(says, "waiting for ", "did not answer within 7s", "--connect-timeout")...)
		in.Until = patience
		return in
	}
	work := "consume --stream s --app a "
	return under("silence",
		misused("no time to wait", "tail --stream s --connect-timeout 0s "+p.endpoint, "--connect-timeout"),
		misused("a time to wait without unit", "tail --stream s --connect-timeout 30 "+p.endpoint, "--connect-timeout"),
		waits("Kinesis behind put", "put --stream s --endpoint http://SILENT "+p.records, "Kinesis at http://"+silent),
		waits("Kinesis behind put --create", "put --stream s --create --endpoint http://SILENT "+p.records, "Kinesis at http://"+silent),
		waits("Kinesis behind tail", "tail --stream s --endpoint http://SILENT", "Kinesis at http://"+silent),
		waits("Kinesis behind tail with TLS", "tail --stream s --endpoint https://SILENT", "Kinesis at https://"+silent),
		waits("Kinesis behind tail by fan-out", "tail --stream s --fan-out existing --fan-out-name me --endpoint http://SILENT", "Kinesis at http://"+silent),
		waits("Kinesis behind consume", work+"--store sqlite:"+p.path("silent.db")+" --endpoint http://SILENT", "Kinesis at http://"+silent),
		waits("Kinesis behind stream create", "stream create --stream s --shards 1 --endpoint http://SILENT", "Kinesis at http://"+silent),
		waits("Kinesis behind fanout", "fanout list --stream s --endpoint http://SILENT", "Kinesis at http://"+silent),
		waits("Kinesis behind reset", "group reset --app a --stream s --to oldest --yes --endpoint http://SILENT "+p.store, "Kinesis at http://"+silent),
		with(waits("S3 behind consume", work+"--store memory: --to s3://bucket/raw "+p.endpoint, "S3 at http://"+silent), "AWS_ENDPOINT_URL_S3=http://"+silent),
		with(waits("STS behind tail", "tail --stream s --role arn:aws:iam::123456789012:role/x "+p.endpoint, "STS at http://"+silent), "AWS_ENDPOINT_URL_STS=http://"+silent),
		waits("DynamoDB behind describe", "group describe --app a --store dynamodb:weir --dynamodb-endpoint http://SILENT", "DynamoDB at http://"+silent),
		waits("DynamoDB behind consume", work+"--store dynamodb:weir --dynamodb-endpoint http://SILENT "+p.endpoint, "DynamoDB at http://"+silent),
		waits("Postgres behind list", "group list --store postgres://u:"+wronginput.Secret+"@SILENT/d", "postgres://u:xxxxx@"+silent),
		waits("Postgres behind consume", work+"--store postgres://u@SILENT/d "+p.endpoint, "postgres://u@"+silent),
		waits("Postgres behind store create", "store create --store postgres://u@SILENT/d", "postgres://u@"+silent),
		waits("MySQL behind list", "group list --store mysql://u:"+wronginput.Secret+"@SILENT/d", "mysql://u:xxxxx@"+silent),
		waits("MySQL behind doctor", "doctor --app a --store mysql://u@SILENT/d "+p.endpoint, "mysql://u@"+silent),
		waits("Redis behind list", "group list --store redis://:"+wronginput.Secret+"@SILENT", "redis://"),
		waits("Redis behind consume", work+"--store redis://SILENT "+p.endpoint, "redis://"+silent),
	)
}
