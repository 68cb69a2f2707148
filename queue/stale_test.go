package queue

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/kinesistest"
)

func TestAgesOfAnswers(t *testing.T) {
	t.Parallel()
	born := time.Now()
	a := &ages{born: born}
	for _, c := range []struct {
		name      string
		date, now time.Duration // after the start
		want      time.Duration
	}{
		{"the first answer is the measure", -time.Hour, time.Millisecond, 0},
		{"another one", time.Second - time.Hour, 1100 * time.Millisecond, 0},
		{"a Date has whole seconds", time.Second - time.Hour, 1990 * time.Millisecond, 0},
		{"it was read 8 s later", 2*time.Second - time.Hour, 10 * time.Second, 8 * time.Second},
		{"the next one is new", 10*time.Second - time.Hour, 10100 * time.Millisecond, 0},
		{"clocks drift", 24*time.Hour - time.Hour, 24*time.Hour + 10*time.Second, 0},
	} {
		got := a.of(born.Round(0).Add(c.date), born.Add(c.now))
		if d := got - c.want; d < -50*time.Millisecond || d > 50*time.Millisecond {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if got := a.of(time.Time{}, born); got != 0 {
		t.Errorf("no Date: %v", got)
	}
}

// slowTransport returns answers late, as a frozen process reads them.
type slowTransport struct {
	kinesis.HTTPClient
	by time.Duration
}

func (s *slowTransport) Do(r *http.Request) (*http.Response, error) {
	res, err := s.HTTPClient.Do(r)
	time.Sleep(s.by)
	return res, err
}

// The hold of a record counts from the Date of an answer that a frozen process reads late.
func TestAnOldAnswerHasAnOldHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cfg := serve(t, kinesistest.Config{}, kinesistest.Queue{})
		c, err := NewClient(cfg)
		if err != nil {
			t.Fatal(err)
		}
		in := ReceiveInput{QueueARN: s.QueueARN("orders"), Limit: 10, Wait: time.Second, Hold: 30 * time.Second}
		if _, err := c.Receive(t.Context(), in); err != nil { // it is the measure
			t.Fatal(err)
		}
		s.Put("s", "k", []byte("data"))
		frozen := &slowTransport{c.http, 8 * time.Second}
		c.http = frozen
		sent := time.Now()
		got, err := c.Receive(context.WithoutCancel(t.Context()), in)
		if err != nil || len(got.Records) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		if d := got.Answered.Sub(sent); d > 2*time.Second {
			t.Errorf("the hold counts from %v after the answer", d)
		}
	})
}
