package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

func TestStreamCreateMakesAStreamOnce(t *testing.T) {
	t.Parallel()
	server, endpoint := kinesisServer(t)
	args := []string{"stream", "create", endpoint, "--stream=flights", "--shards=3", "--kms-key=alias/aws/kinesis", "--retention=48h", "--max-record-size=2MiB", "--tag=team=a=b", "--tag=stage=test"}
	if said := mustRun(t, "", args...); said != "stream flights is made: "+server.StreamARN("flights")+"\n" {
		t.Errorf("it says %q", said)
	}
	name := "flights"
	tags, err := server.Client().ListTagsForStream(t.Context(), &kinesis.ListTagsForStreamInput{StreamName: &name})
	if err != nil || len(tags.Tags) != 2 {
		t.Errorf("the tags are %+v, %v", tags, err)
	}
	again := start(t, "", args...)
	if code := again.wait(t); code != exitDone || !strings.Contains(again.out.String(), "exists already") || strings.Contains(again.err.String(), "left as it is") {
		t.Errorf("again: exit code %d, %s%s", code, again.out, again.err)
	}

	other := start(t, "", "stream", "create", endpoint, "--stream=flights", "--shards=on-demand", "--tag=team=other", "-o=json")
	code := other.wait(t)
	var said struct {
		Stream, ARN string
		Created     bool
		Differences []string
	}
	if err := json.Unmarshal([]byte(other.out.String()), &said); err != nil || code != exitDone || said.Created || said.ARN != server.StreamARN("flights") || len(said.Differences) != 2 {
		t.Errorf("exit code %d, %v, %+v", code, err, said)
	}
	for _, d := range said.Differences {
		if !strings.Contains(other.err.String(), "left as it is, although "+d) {
			t.Errorf("%q is not among %s", d, other.err)
		}
	}
}

func TestConsumeMakesItsStreamsWhenAsked(t *testing.T) {
	server, endpoint := kinesisServer(t)
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	c := start(t, "", "consume", endpoint, "--stream=one", "--stream=two", "--create-stream=2", "--app=a", store)
	c.err.await(t, "both streams", func(s string) bool {
		return strings.Contains(s, "stream one is made") && strings.Contains(s, "stream two is made")
	})
	for _, name := range []string{"one", "two"} {
		if n := len(server.OpenShards(name)); n != 2 {
			t.Errorf("stream %s has %d shards", name, n)
		}
	}
	server.Put("one", "k", []byte("hello"))
	c.out.await(t, "the record", func(s string) bool { return s == "hello\n" })
	if code := c.interrupt(t); code != exitDone {
		t.Errorf("exit code %d, %s", code, c.err)
	}
	again := start(t, "", "consume", endpoint, "--stream=one", "--create-stream=3", "--app=a", store)
	again.err.await(t, "what is different", func(s string) bool {
		return strings.Contains(s, "stream one is left as it is, although it has 2 open shards, not 3")
	})
	again.interrupt(t)
}
