package clitest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
)

// KinesisWithOrders starts a server that has a stream with some records. One record is not JSON.
func KinesisWithOrders(t *testing.T) (endpoint string) {
	t.Helper()
	server, endpoint := Kinesis(t)
	server.CreateStream("s", 1)
	for _, data := range []string{`{"n":1,"kind":"order"}`, `{"n":2,"kind":"refund"}`, `no JSON`, `{"n":3,"kind":"order"}`, `{"n":4,"kind":"return"}`} {
		server.Put("s", "k", []byte(data))
	}
	return endpoint
}

// JustOrders is a pattern that matches some of the records of KinesisWithOrders.
const JustOrders = `{"data":{"kind":["order"]}}`

// printed is a record as the output of -o json contains it.
type printed struct {
	Shard, Sequence, Key, Arrival string
	Data                          *string
	Base64                        []byte `json:"data_base64"`
}

// ParsePrinted decodes records that were printed with -o json.
func ParsePrinted(t *testing.T, lines []string) []printed {
	t.Helper()
	var all []printed
	for _, line := range lines {
		var p printed
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		all = append(all, p)
	}
	return all
}

// Consume runs a worker until it has printed n records, and stops the worker. It returns the
// printed lines.
func Consume(t *testing.T, n int, endpoint, store string) []string {
	t.Helper()
	worker := Start(t, "", "consume", endpoint, store, "--stream=s", "--app=a", "--worker=first")
	worker.Out.Await(t, "all records", func(s string) bool { return strings.Count(s, "\n") >= n })
	if code := worker.Interrupt(t); code != cli.ExitDone {
		t.Fatalf("the worker ended with %d: %s", code, worker.Err)
	}
	return worker.Out.Lines()
}

// FindingCodes returns the codes of the findings in the output of "weir doctor -o json".
func FindingCodes(t *testing.T, out string) (codes []string) {
	t.Helper()
	for _, f := range Decode[struct{ Findings []struct{ Code string } }](t, out).Findings {
		codes = append(codes, f.Code)
	}
	return codes
}
