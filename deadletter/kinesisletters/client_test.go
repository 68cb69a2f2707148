package kinesisletters

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/kinesistest"
)

// counter counts the dead letters that are put and the records that are read.
type counter struct {
	*kinesis.Client
	puts, reads int
}

func (c *counter) PutRecords(ctx context.Context, in *kinesis.PutRecordsInput, opts ...func(*kinesis.Options)) (*kinesis.PutRecordsOutput, error) {
	c.puts += len(in.Records)
	return c.Client.PutRecords(ctx, in, opts...)
}

func (c *counter) GetRecords(ctx context.Context, in *kinesis.GetRecordsInput, opts ...func(*kinesis.Options)) (*kinesis.GetRecordsOutput, error) {
	out, err := c.Client.GetRecords(ctx, in, opts...)
	if err == nil {
		c.reads += len(out.Records)
	}
	return out, err
}

// A Stream calls the methods of a wrapper around the client to put and to read dead letters.
func TestAClientMayBeWrapped(t *testing.T) {
	server := kinesistest.NewServer(t)
	server.CreateStream("dead", 1)
	client := &counter{Client: server.Client()}
	s, err := New(client, "dead")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), []deadletter.Letter{letter(1, "a", nil), letter(2, "b", nil)}); err != nil {
		t.Fatal(err)
	}
	if all, n := ids(t, s); n != 2 || client.puts != 2 || client.reads != 2 {
		t.Errorf("%v, %d puts and %d reads", all, client.puts, client.reads)
	}
	for name, none := range map[string]Kinesis{"none": nil, "a nil client": (*kinesis.Client)(nil)} {
		if _, err := New(none, "dead"); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
