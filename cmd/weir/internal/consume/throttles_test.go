package consume

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/fanout"
)

func TestReadShareIsAFlag(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	for range 20 {
		server.Put("s", "k", make([]byte, 50_000))
	}
	for _, command := range []string{"consume --app a --store memory:", "tail"} {
		for value, want := range map[string]string{
			"0": "--read-share 0: want 0.01 to 1", "1.5": "--read-share 1.5: want", "-1": "--read-share -1: want", "NaN": "--read-share NaN: want",
			"half": `--read-share "half": want 0.01 to 1`,
		} {
			args := append(strings.Fields(command), "--stream=s", endpoint, "--read-share="+value)
			c := clitest.Start(t, "", args...)
			if code := c.Wait(t); code != 2 || !strings.Contains(c.Err.String(), want) {
				t.Errorf("%s with %s: code %d, %q", command, value, code, c.Err)
			}
		}
	}
	before := server.Requests("GetRecords")
	began := time.Now()
	clitest.MustRun(t, "", "tail", endpoint, "--stream=s", "--until-tip", "--read-share=0.5")
	if n := server.Requests("GetRecords") - before; n < 2 || time.Since(began) < time.Duration(n-1)*390*time.Millisecond {
		t.Errorf("%d reads in %v", n, time.Since(began))
	}
}

func TestManyThrottledReadsAreTold(t *testing.T) {
	var c throttles
	now, told := time.Now(), 0
	for range 300 { // one throttled read a second
		if c.add(now) {
			told++
		}
		now = now.Add(time.Second)
	}
	if told != 5 {
		t.Errorf("told %d times in five minutes", told)
	}
	for range 300 { // one throttled read every ten seconds
		now = now.Add(10 * time.Second)
		if c.add(now) {
			t.Fatal("told of a few")
		}
	}
	var of throttles
	told = 0
	for range 30 {
		if of.count(event.ReadFailed{Throttled: true, Err: fanout.ErrSubscribed}, now) || of.count(event.ReadFailed{Err: errors.New("bad")}, now) {
			t.Error("told of what was not throttled")
		}
	}
	for range 30 {
		if of.count(event.ReadFailed{Throttled: true, Err: errors.New("slow down")}, now) {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}
