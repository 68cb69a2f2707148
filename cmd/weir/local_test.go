package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestLocal(t *testing.T) {
	c := start(t, "", "local", "--addr=127.0.0.1:0", "--stream=a:3", "--stream=b")
	c.out.await(t, "the welcome", func(s string) bool { return strings.Contains(s, "Ctrl-C") })
	found := regexp.MustCompile(`AWS_ENDPOINT_URL_KINESIS=(\S+)`).FindStringSubmatch(c.out.String())
	if found == nil {
		t.Fatalf("no endpoint in %s", c.out)
	}
	if !strings.Contains(c.out.String(), "Stream a has 3 shards.") || !strings.Contains(c.out.String(), "Stream b has 1 shard.") {
		t.Errorf("it said %s", c.out)
	}
	mustRun(t, "one\n", "put", "--endpoint="+found[1], "--stream=a")
	if out := mustRun(t, "", "tail", "--endpoint="+found[1], "--stream=a", "--until-tip"); out != "one\n" {
		t.Errorf("tail printed %q", out)
	}
	if code := c.interrupt(t); code != exitDone {
		t.Errorf("exit code %d, %s", code, c.err)
	}
}

func TestLocalWithTLS(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.pem")
	c := start(t, "", "local", "--addr=127.0.0.1:0", "--stream=a", "--tls", "--ca-file="+ca)
	c.out.await(t, "the welcome", func(s string) bool { return strings.Contains(s, "Ctrl-C") })
	found := regexp.MustCompile(`AWS_ENDPOINT_URL_KINESIS=(https://\S+)`).FindStringSubmatch(c.out.String())
	if found == nil || !strings.Contains(c.out.String(), "AWS_CA_BUNDLE="+ca) {
		t.Fatalf("it said %s", c.out)
	}
	if _, err := os.Stat(ca); err != nil {
		t.Fatal(err)
	}
	refused := start(t, "", "tail", "--endpoint="+found[1], "--stream=a", "--until-tip")
	if code := refused.wait(t); code != exitFailed || !strings.Contains(refused.err.String(), "certificate") {
		t.Errorf("without the certificate: exit code %d, %s", code, refused.err)
	}
	t.Setenv("AWS_CA_BUNDLE", ca)
	mustRun(t, "one\n", "put", "--endpoint="+found[1], "--stream=a")
	if out := mustRun(t, "", "tail", "--endpoint="+found[1], "--stream=a", "--until-tip"); out != "one\n" {
		t.Errorf("tail printed %q", out)
	}
}
