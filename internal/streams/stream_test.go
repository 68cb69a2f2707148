package streams

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

func TestStreamsAreParsed(t *testing.T) {
	const arn = "arn:aws:kinesis:eu-west-3:123456789012:stream/orders"
	for _, c := range []struct {
		given []string
		want  []Stream
		says  string // a part of the problems
	}{
		{[]string{"orders", "a_B.9-", "orders"}, []Stream{{Name: "orders"}, {Name: "a_B.9-"}}, ""},
		{[]string{arn, arn}, []Stream{{"orders", arn}}, ""},
		{[]string{arn, "orders"}, []Stream{{"orders", arn}}, "given twice"},
		{[]string{"orders", strings.Replace(arn, "eu-west-3", "us-east-1", 1)}, []Stream{{Name: "orders"}}, "is in region us-east-1"},
		{[]string{"arn:aws:kinesis:eu-west-3:1:stream/orders"}, nil, "not the ARN of a stream"},
		{[]string{""}, nil, "1 to 128"},
		{[]string{"a b", strings.Repeat("x", 129)}, nil, "1 to 128"},
	} {
		got, problems := ParseAll(RegionOf(kinesis.New(kinesis.Options{Region: "eu-west-3"})), c.given)
		var said []string
		for _, p := range problems {
			said = append(said, p.Error())
		}
		if says := strings.Join(said, "; "); !slices.Equal(got, c.want) || !strings.Contains(says, c.says) || (c.says == "") != (says == "") {
			t.Errorf("%q: %q, and the problems %q", c.given, got, says)
		}
	}
}

func TestWhatCameIntoASetAndWhatLeft(t *testing.T) {
	var set Set
	for _, c := range []struct {
		given            []Stream
		came, left, have []string
	}{
		{nil, nil, nil, nil},
		{[]Stream{{Name: "b"}, {Name: "a"}}, []string{"a", "b"}, nil, []string{"a", "b"}},
		{[]Stream{{Name: "b"}, {Name: "c", ARN: "arn"}}, []string{"c"}, []string{"a"}, []string{"b", "c"}},
		{[]Stream{{Name: "b", ARN: "arn"}, {Name: "c", ARN: "arn"}}, nil, nil, []string{"b", "c"}},
	} {
		came, left := set.Replace(c.given)
		if !slices.Equal(came, c.came) || !slices.Equal(left, c.left) || !slices.Equal(set.Names(), c.have) {
			t.Errorf("%v: %v came and %v left, so that there are %v", c.given, came, left, set.Names())
		}
	}
	if b, other := set.Stream("b"), set.Stream("other"); b.ARN != "arn" || other != (Stream{Name: "other"}) {
		t.Errorf("b is %v, and another one %v", b, other)
	}
}
