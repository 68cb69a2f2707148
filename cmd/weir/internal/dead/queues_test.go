package dead

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/deadletter"
)

// Dead letters about records of a Kinesis queue have no sequence number. They can be shown and
// handled again all the same.
func TestLettersOfAKinesisQueue(t *testing.T) {
	const arn = "arn:aws:kinesis:eu-west-1:111122223333:queue/q-1"
	file := filepath.Join(t.TempDir(), "dead.ndjson")
	dead := "--dead=file:" + file
	var letters []deadletter.Letter
	for _, position := range []string{"r1", "r2+3"} {
		l := deadletter.Letter{
			Version: deadletter.Version, Stream: arn, Shard: deadletter.QueueShard, Position: position, App: "orders",
			Data: []byte("data of " + position), Reason: deadletter.Rejected, Error: "refused", Together: 1,
		}
		l.ID = deadletter.ID(l.App, l.RecordID())
		letters = append(letters, l)
	}
	if err := deadletter.File(file).Put(t.Context(), letters); err != nil {
		t.Fatal(err)
	}
	if list := clitest.MustRun(t, "", "dead", "list", dead, "--stream", arn); !strings.Contains(list, letters[1].ID) {
		t.Errorf("%s", list)
	}
	for _, id := range []string{letters[1].ID, arn + "/queue/r2+3"} {
		shown := clitest.MustRun(t, "", "dead", "show", dead, id)
		for _, want := range []string{"queue           " + arn + "\n", "record ID       r2\n", "in aggregate    record 3\n", "data of r2+3"} {
			if !strings.Contains(shown, want) {
				t.Errorf("no %q in\n%s", want, shown)
			}
		}
		if strings.Contains(shown, "shard") || strings.Contains(shown, "sequence number") {
			t.Errorf("%s", shown)
		}
	}
	handled := clitest.MustRun(t, "", "dead", "retry", dead, "--yes", letters[1].ID, "--exec", `cat; echo "$WEIR_QUEUE $WEIR_RECORD $WEIR_LETTER $WEIR_SHARD"`)
	if want := "data of r2+3\n" + arn + " r2+3 " + letters[1].ID + " \n"; !strings.HasPrefix(handled, want) {
		t.Errorf("%q, want %q", handled, want)
	}
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("again", 1)
	if code, _, said := clitest.Answered(t, "retry\n", "dead", "retry", dead, endpoint, "--to-stream=again", "--all"); code != cli.ExitDone {
		t.Fatalf("%d %s", code, said)
	}
	if records := server.Records("again"); len(records) != 1 || records[0].PartitionKey != "r1" || string(records[0].Data) != "data of r1" {
		t.Errorf("%+v", records)
	}
}
