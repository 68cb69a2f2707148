package main

import "github.com/weir-go/weir/internal/proof/wronginput"

// wrongBlanks returns command lines that contain an unset or blank shell variable.
func wrongBlanks(p *wrongPlace) []wronginput.Input {
	blank := func(name, args string, words ...string) wronginput.Input {
		return more(misused(name, args, "blank"), words...)
	}
	consume := "consume --stream s --app a --store memory: " + p.endpoint
	return under("blank",
		blank("no stream to put to", "put "+p.endpoint+" "+p.records, "--stream="),
		blank("spaces as the key", "put --stream s "+p.endpoint+" "+p.records, "--key", "  "),
		blank("spaces as the file", "put --stream s "+p.endpoint, " "),
		blank("no endpoint", "put --stream s "+p.records, "--endpoint="),
		blank("no place to start", "tail --stream s "+p.endpoint, "--from="),
		blank("spaces as the shard", "tail --stream s "+p.endpoint, "--shard", " "),
		blank("no region", "tail --stream s "+p.endpoint, "--region", ""),
		blank("no command to handle batches", consume, "--exec="),
		blank("spaces to handle batches", consume, "--exec", "  "),
		blank("no second stream", consume, "--stream", ""),
		blank("no worker", consume, "--worker", ""),
		blank("no health address", consume, "--health="),
		blank("no endpoint of DynamoDB", consume, "--dynamodb-endpoint="),
		blank("no store", "consume --stream s --app a "+p.endpoint, "--store="),
		blank("no app to describe", "group describe "+p.store, "--app="),
		blank("no stream to pause", "group pause --app a "+p.store, "--stream", ""),
		blank("no stream to resume", "group resume --app a "+p.store, "--stream", ""),
		blank("no dump before a reset", "group reset --app a --to oldest --yes "+p.store+" "+p.endpoint, "--dump="),
		blank("no stream to diagnose", "doctor --app a "+p.store+" "+p.endpoint, "--stream", ""),
		blank("no consumer to remove", "fanout remove --stream s --yes "+p.endpoint, "--name="),
		blank("no store to create", "store create", "--store", " "),
		blank("no certificate", "local --addr 127.0.0.1:0 --tls", "--ca-file="),
		blank("no host", "local --addr 127.0.0.1:0", "--host="),
		more(misused("no worker to drain", "group drain --app a "+p.store), ""),
		more(misused("no file to export to", "group export --app a "+p.store), ""),
	)
}
