package s3letters_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/proof/fakes3"
	"github.com/weir-go/weir/sink/s3sink/s3letters"
)

// clientOf returns a client for a bucket in memory.
func clientOf(bucket *fakes3.Server) *s3.Client {
	return s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://s3.test"), UsePathStyle: true, HTTPClient: bucket,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"}, nil
		}),
	})
}

func box(t *testing.T, bucket *fakes3.Server) *s3letters.Box {
	t.Helper()
	b, err := s3letters.New(clientOf(bucket), "b", "dead")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func letter(position string) deadletter.Letter {
	return deadletter.Letter{
		Version: deadletter.Version, ID: "s/shardId-000000000000/" + position, Stream: "s", Shard: "shardId-000000000000", Position: position,
		Data: []byte("record " + position), Reason: deadletter.Attempts, Attempts: 3, Error: "refused", GivenUp: time.Date(2026, 11, 24, 1, 2, 3, 0, time.UTC),
	}
}

func put(t *testing.T, b deadletter.Box, positions ...string) {
	t.Helper()
	var letters []deadletter.Letter
	for _, p := range positions {
		letters = append(letters, letter(p))
	}
	if err := b.Put(t.Context(), letters); err != nil {
		t.Fatal(err)
	}
}

// items returns the dead letters of a box, with their positions and states, and the errors.
func items(t *testing.T, b deadletter.Box) (all, failed []string) {
	t.Helper()
	for i, err := range b.Items(t.Context()) {
		if err != nil {
			failed = append(failed, err.Error())
			continue
		}
		all = append(all, i.Position+" "+string(i.State))
		if string(i.Data) != "record "+i.Position || i.Since.IsZero() != (i.State == deadletter.Kept) {
			t.Errorf("%+v", i)
		}
	}
	return all, failed
}

func want(t *testing.T, b deadletter.Box, all ...string) {
	t.Helper()
	if got, failed := items(t, b); !slices.Equal(got, all) || len(failed) > 0 {
		t.Errorf("%q, %q; want %q", got, failed, all)
	}
}

func TestABucketKeepsLettersAndWhatBecameOfThem(t *testing.T) {
	bucket := fakes3.New()
	b := box(t, bucket)
	want(t, b)
	put(t, b, "12", "11+10", "11+2", "11", "10")
	bucket.Put("dead/of-another-program", nil)
	bucket.Put("deader/x.json", nil)
	want(t, b, "10 kept", "11+2 kept", "11+10 kept", "11 kept", "12 kept")
	mark := func(to deadletter.State, positions ...string) {
		t.Helper()
		var ids []string
		for _, p := range positions {
			ids = append(ids, letter(p).ID)
		}
		if err := b.Mark(t.Context(), to, ids...); err != nil {
			t.Error(err)
		}
	}
	mark(deadletter.Begun, "10", "11")
	mark(deadletter.Done, "10")
	mark(deadletter.Dropped, "12")
	mark(deadletter.Dropped, "11+2")
	mark(deadletter.Kept, "11+2")
	want(t, b, "10 done", "11+2 kept", "11+10 kept", "11 begun", "12 dropped")
	want(t, box(t, bucket), "10 done", "11+2 kept", "11+10 kept", "11 begun", "12 dropped")
	put(t, b, "10", "12") // dead-lettered again
	want(t, b, "10 kept", "11+2 kept", "11+10 kept", "11 begun", "12 kept")
	if n := len(bucket.Keys()); n != 7 {
		t.Errorf("%q", bucket.Keys())
	}
	if err := b.Mark(t.Context(), "lost", letter("10").ID); err == nil || !strings.Contains(err.Error(), "not a valid state") {
		t.Errorf("%v", err)
	}
	if err := b.Mark(t.Context(), deadletter.Done, letter("99").ID); err == nil || !strings.Contains(err.Error(), "there is no dead letter dead/s/shardId-000000000000/99.json") {
		t.Errorf("%v", err)
	}
	var whole deadletter.Letter
	if err := json.Unmarshal(bucket.Get("dead/s/shardId-000000000000/10.json"), &whole); err != nil || whole.ID != letter("10").ID {
		t.Errorf("%+v, %v", whole, err)
	}
}

// Each ID has a key of its own, even if the ID contains slashes and dots, and an invalid ID is
// refused.
func TestKeysOfLetters(t *testing.T) {
	bucket := fakes3.New()
	b := box(t, bucket)
	ids := []string{"a/b/17", "a/b/17+1", "a/b/x", "a//b", "a/%/b", "a/%25/b", "../../x", "/", ".", "a/b", "ä/\x01", "a/b/17.json", "a/b/latest", "a/b/17+01", strings.Repeat("x", 900), strings.Repeat("x", 1024), deadletter.ID(strings.Repeat("/", 255), "s/shardId-000000000000/1")}
	for _, id := range ids {
		if err := b.Put(t.Context(), []deadletter.Letter{{Version: 1, ID: id}}); err != nil {
			t.Error(err)
		}
	}
	seen := map[string]bool{}
	for i, err := range b.Items(t.Context()) {
		if err != nil {
			t.Error(err)
		}
		seen[i.ID] = true
	}
	if len(seen) != len(ids) || len(bucket.Keys()) != len(ids) {
		t.Errorf("%d of %d letters: %q", len(seen), len(ids), bucket.Keys())
	}
	for _, key := range bucket.Keys() {
		if strings.Contains(key, "/.") || strings.Contains(key, "//") || !strings.HasPrefix(key, "dead/") {
			t.Errorf("a key is %q", key)
		}
	}
	for _, id := range []string{"", strings.Repeat("x", 2049)} {
		if err := b.Put(t.Context(), []deadletter.Letter{{Version: 1, ID: id}}); err == nil || !strings.Contains(err.Error(), "cannot be part of a key") {
			t.Errorf("%.20q: %v", id, err)
		}
	}
}

// If a worker dead-letters a record again while its dead letter is being handled, the dead letter
// stays.
func TestALetterThatComesAgainMeanwhileStays(t *testing.T) {
	bucket := fakes3.New()
	put(t, box(t, bucket), "1")
	b := box(t, bucket)
	var letters []deadletter.Item
	for i, err := range b.Items(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		letters = append(letters, i)
	}
	if o, err := deadletter.Retry(t.Context(), b, letters, func(context.Context, deadletter.Item) error {
		put(t, box(t, bucket), "1")
		return nil
	}); o.Done != 1 || err != nil {
		t.Errorf("%+v, %v", o, err)
	}
	want(t, b, "1 kept")
}

// A mark whose answer is lost still counts, and the box recognizes it as its own.
func TestALostAnswerToAMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := fakes3.New()
		b := box(t, bucket)
		put(t, b, "1")
		want(t, b, "1 kept")
		n := 0
		bucket.Control(func(c fakes3.Call) fakes3.Fault {
			if n++; c.Method == "PUT" && n < 3 {
				return fakes3.Lose
			}
			return fakes3.None
		})
		for _, to := range []deadletter.State{deadletter.Begun, deadletter.Done} {
			n = 0
			if err := b.Mark(t.Context(), to, letter("1").ID); err != nil {
				t.Error(err)
			}
		}
		bucket.Control(nil)
		want(t, b, "1 done")
	})
}

func TestDamagedLettersSpoilNoOthers(t *testing.T) {
	bucket := fakes3.New()
	b := box(t, bucket)
	put(t, b, "1", "3")
	key := "dead/s/shardId-000000000000/2.json"
	for text, says := range map[string]string{
		"<html>":                         "is not a dead letter: invalid character",
		`{"a":1}`:                        `it has no "weir_letter"`,
		`{"weir_letter":2}`:              "form 2; this weir reads up to 1",
		`{"weir_letter":1,"id":"s/x/1"}`: `its ID is "s/x/1"`,
		`{"weir_letter":1}`:              "it has no id",
		strings.Repeat(" ", 17<<20):      "more than 16777216 bytes",
		`{"weir_letter":1,"id":"s/shardId-000000000000/2","state":"eaten"}`: `its state is "eaten"`,
	} {
		bucket.Put(key, []byte(text))
		all, failed := items(t, b)
		if !slices.Equal(all, []string{"1 kept", "3 kept"}) || len(failed) != 1 || !strings.Contains(failed[0], says) || !strings.Contains(failed[0], key) {
			t.Errorf("%.50s: %q, %q", text, all, failed)
		}
	}
}

// The box reads many dead letters with several listings, and the caller may stop early.
func TestManyLetters(t *testing.T) {
	bucket := fakes3.New()
	b := box(t, bucket)
	var positions []string
	for i := range 2500 {
		positions = append(positions, fmt.Sprint(10000+i))
	}
	put(t, b, positions...)
	all, failed := items(t, b)
	if len(all) != 2500 || len(failed) > 0 || all[2499] != "12499 kept" || bucket.Calls("LIST") != 4 {
		t.Errorf("%d letters, %q, %d calls", len(all), failed, bucket.Calls("LIST"))
	}
	for i, err := range b.Items(t.Context()) {
		if err != nil || i.Position != "10000" {
			t.Errorf("%+v", i)
		}
		break
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	for _, err := range b.Items(ctx) {
		if err == nil {
			t.Error("after the end")
		}
	}
	if err := b.Put(ctx, []deadletter.Letter{letter("1")}); err == nil || err.Error() != "enough" {
		t.Errorf("after the end: %v", err)
	}
}

// The error about an outage is short. The dead letters can be put again afterwards.
func TestAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := fakes3.New()
		bucket.Control(func(fakes3.Call) fakes3.Fault { return fakes3.Deny })
		b := box(t, bucket)
		var letters []deadletter.Letter
		for i := range 100 {
			letters = append(letters, letter(fmt.Sprint(1000+i)))
		}
		err := b.Put(t.Context(), letters)
		if err == nil || strings.Count(err.Error(), "\n") != 3 || !strings.Contains(err.Error(), "97 more of 100 dead letters") {
			t.Errorf("%v", err)
		}
		if _, failed := items(t, b); len(failed) != 1 {
			t.Errorf("%q", failed)
		}
		bucket.Control(nil)
		if err := b.Put(t.Context(), letters); err != nil {
			t.Error(err)
		}
	})
}

func TestNew(t *testing.T) {
	client := s3.New(s3.Options{})
	for says, err := range map[string]error{
		"the client is nil":  second(s3letters.New(nil, "b", "")),
		"no bucket is named": second(s3letters.New(client, "", "")),
		`the prefix "/x/"`:   second(s3letters.New(client, "b", "/x")),
	} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

func second(_ *s3letters.Box, err error) error { return err }

// For any content of one object, reading must not panic, and must still find the dead letter in the
// other object.
func FuzzLetters(f *testing.F) {
	whole, err := json.Marshal(letter("2"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"weir_letter":1,"id":"s/shardId-000000000000/2","state":"begun","since":"x"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		bucket := fakes3.New()
		b := box(t, bucket)
		put(t, b, "9")
		bucket.Put("dead/s/shardId-000000000000/2.json", text)
		found := 0
		for i, err := range b.Items(t.Context()) {
			if err == nil && i.Position == "9" && i.ID == letter("9").ID {
				found++
			}
		}
		if found != 1 {
			t.Errorf("found %d times", found)
		}
	})
}

// If a dead letter changes between the read and the write of a mark, the condition of the write
// detects it.
func TestAChangeAtTheLastMoment(t *testing.T) {
	bucket := fakes3.New()
	put(t, box(t, bucket), "1")
	b, other := box(t, bucket), box(t, bucket)
	want(t, b, "1 kept")
	once := false
	bucket.Control(func(c fakes3.Call) fakes3.Fault {
		if c.Method == "PUT" && !once {
			once = true
			if err := other.Mark(t.Context(), deadletter.Begun, letter("1").ID); err != nil {
				t.Error(err)
			}
		}
		return fakes3.None
	})
	if err := b.Mark(t.Context(), deadletter.Begun, letter("1").ID); !errors.Is(err, deadletter.ErrChanged) || !strings.Contains(err.Error(), "which is begun now") {
		t.Errorf("%v", err)
	}
	if err := other.Mark(t.Context(), deadletter.Done, letter("1").ID); err != nil {
		t.Error(err)
	}
}

// A box that is used for a long time forgets dead letters that have been removed.
func TestABoxForgetsLettersThatAreGone(t *testing.T) {
	bucket := fakes3.New()
	b := box(t, bucket)
	remembered := func() int { return reflect.ValueOf(b).Elem().FieldByName("seen").FieldByName("of").Len() }
	for round := range 3 {
		var positions []string
		for n := range 10 {
			positions = append(positions, strconv.Itoa(10*(round+1)+n))
		}
		put(t, b, positions...)
		if all, _ := items(t, b); len(all) != 10 {
			t.Errorf("%d letters", len(all))
		}
		if n := remembered(); n != 10 {
			t.Errorf("%d dead letters are remembered of 10", n)
		}
		put(t, box(t, bucket), positions[9]) // it has the same content
		other := letter(positions[8])
		other.Attempts++
		if err := box(t, bucket).Put(t.Context(), []deadletter.Letter{other}); err != nil {
			t.Fatal(err)
		}
		err := b.Mark(t.Context(), deadletter.Begun, letter(positions[9]).ID, other.ID)
		if !errors.Is(err, deadletter.ErrChanged) || strings.Contains(err.Error(), letter(positions[9]).ID) {
			t.Errorf("%v", err)
		}
		for _, key := range bucket.Keys() {
			bucket.Delete(key)
		}
	}
	if items(t, b); remembered() != 0 {
		t.Errorf("%d dead letters are remembered of none", remembered())
	}
}
