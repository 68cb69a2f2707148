package main

import (
	"strings"

	"github.com/weir-go/weir/internal/proof/wronginput"
)

const html = "<!DOCTYPE html>\n<html><head><title>Welcome to nginx!</title></head><body>It works.</body></html>\n"

// wrongDumps returns inputs with damaged files of progress.
func wrongDumps(p *wrongPlace) []wronginput.Input {
	head, lease, _ := strings.Cut(strings.TrimSuffix(wrongDump, "\n"), "\n")
	of := func(name, text string, says ...string) wronginput.Input {
		return fed(fails(name, "group import --app fresh --yes --store sqlite:"+p.path("import.db")+" -", says...), text)
	}
	changed := func(old, new string) string { return strings.Replace(wrongDump, old, new, 1) }
	return under("import",
		fails("a file that is not there", "group import --app fresh --yes "+p.store+" "+p.path("none.ndjson"), "there is no file", "none.ndjson"),
		fails("a directory", "group import --app fresh --yes "+p.store+" "+p.dir, "directory"),
		of("nothing", "", `"weir group export"`),
		of("a page of HTML", html, `"weir group export"`),
		of("records", "{\"k\":\"a\"}\n", `"weir group export"`),
		of("a database", "SQLite format 3\x00\x10\x00\x01\x01", `"weir group export"`),
		of("a version of the future", changed(`"version":1`, `"version":9`), "version 9", "newer weir"),
		of("a lease that is missing", head+"\n", "cut off", "0 of its 1"),
		of("a lease that is cut", wrongDump[:len(wrongDump)-30], "line 2", "not a lease"),
		of("a lease too many", wrongDump+lease+"\n", "line 3", "more than the 1"),
		of("a lease that is there twice", changed(`"leases":1`, `"leases":2`)+lease+"\n", "line 3", "there already, in line 2"),
		of("a field that nobody knows", changed(`"epoch":1`, `"epoch":1,"colour":"red"`), "line 2", "colour"),
		of("a position that is none", changed(`"oldest"`, `"somewhere"`), "line 2", "somewhere"),
		of("no position", changed(`,"position":"oldest"`, ""), "line 2", "no position"),
		of("a number as position", changed(`"position":"oldest"`, `"position":17`), "line 2"),
		of("no epoch", changed(`"epoch":1`, `"epoch":0`), "line 2", "epoch"),
		of("an epoch beyond all numbers", changed(`"epoch":1`, `"epoch":99999999999999999999`), "line 2", "epoch"),
		of("a range that ends before it begins", changed(`["0","340282366920938463463374607431768211455"]`, `["9","1"]`), "line 2"),
		of("a range beyond all keys", changed("340282366920938463463374607431768211455", "940282366920938463463374607431768211455"), "line 2"),
		of("no shard", changed("shardId-000000000000", ""), "line 2", "shard"),
		of("a shard that clears the screen", changed("shardId-000000000000", `\u001b[2J`), "line 2", "control character"),
		of("leases below nothing", changed(`"leases":1`, `"leases":-1`), "line 1", "-1"),
		of("an app without a name", changed(`"app":"a"`, `"app":""`), "application's name"),
		of("a line without an end", head+"\n"+strings.Repeat("x", 70<<10), "line 2", "64 KiB"),
	)
}

// wrongRecords returns inputs with files of records that cannot be put.
func wrongRecords(p *wrongPlace) []wronginput.Input {
	of := func(name, flags, text string, says ...string) wronginput.Input {
		return fed(fails(name, "put --quiet --stream s "+flags+" "+p.endpoint+" -", says...), text)
	}
	binary := string([]byte{0xff, 0xfe, 0, 1, 2, 3, '\n'})
	huge := strings.Repeat("x", 1<<20+1)
	return under("records",
		fails("a file that is not there", "put --stream s "+p.endpoint+" "+p.path("none"), "there is no file"),
		fails("a directory", "put --stream s "+p.endpoint+" "+p.dir, "is a directory"),
		of("a record that is too large", "", "small\n"+huge+"\n", "line 2 is too large", "1024 KiB", "1 record was put"),
		of("a record without an end", "", strings.Repeat("x", 12<<20), "line 1 is too large"),
		of("a record that is too large for its key", "--key k", `{"k":"`+strings.Repeat("y", 200)+`","x":"`+strings.Repeat("x", 1<<20-230)+"\"}\n", "line 1 is too large", "the key included"),
		of("text where JSON is asked for", "--key k", "{\"k\":\"a\"}\nplain\n", "line 2", "not a JSON object", "1 record was put"),
		of("binary where JSON is asked for", "--key k", binary, "line 1", "not a JSON object", "nothing was put"),
		of("JSON that is cut", "--key k", `{"k":"a`, "line 1", "not a JSON object"),
		of("an array where an object is asked for", "--key k", "[1,2]\n", "line 1", "not a JSON object"),
		of("an object without the key", "--key k", "{\"x\":1}\n", "line 1", `no field "k"`),
		of("an object as the key", "--key k", "{\"k\":{}}\n", "line 1", "cannot be a partition key"),
		of("an empty key", "--key k", "{\"k\":\"\"}\n", "line 1", "partition key"),
		of("a key that is too long", "--key k", `{"k":"`+strings.Repeat("x", 257)+"\"}\n", "line 1", "257 characters"),
		of("a stream that is not there", "--stream none", "x\n", "there is no such stream", "--create"),
	)
}
