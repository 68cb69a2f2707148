package main

import (
	"bufio"
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/kinesistest"
)

// The program prints the records of the stream, and ends gracefully when its context ends. A second
// run continues after those records.
func TestTheFirstConsumer(t *testing.T) {
	srv := kinesistest.NewServer(t)
	srv.CreateStream("flights", 4)
	t.Chdir(t.TempDir())
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_KINESIS": srv.URL(), "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x",
	} {
		t.Setenv(name, value)
	}
	before := os.Stdout
	t.Cleanup(func() { os.Stdout = before })
	for _, records := range [][]string{{"DL1572", "HA12", "DL89"}, {"UA1"}} {
		for _, r := range records {
			srv.Put("flights", "ATL", []byte(r))
		}
		printed, stdout, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout = stdout
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- run(ctx)
			stdout.Close()
		}()
		var got []string
		for lines := bufio.NewScanner(printed); lines.Scan(); {
			if got = append(got, lines.Text()[strings.LastIndex(lines.Text(), " ")+1:]); len(got) == len(records) {
				stop()
			}
		}
		stop()
		if err := <-ended; err != nil || !slices.Equal(got, records) {
			t.Errorf("it printed %q, want %q, and ended with %v", got, records, err)
		}
		printed.Close()
	}
}
