package codec_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/internal/proof/answers"
	"github.com/weir-go/weir/internal/wire/codec"
)

// pages returns answers of all kinds.
func pages() map[string]*codec.Page {
	odd := answers.Sample(5, 33)
	odd.Records[0].Data = []byte{}
	odd.Records[1].Key = ""
	odd.Records[2].Key = "ключ/\"\\\t𝄞"
	odd.Records[3].Encrypted = true
	odd.Records[4].Data = bytes.Repeat([]byte{0xff, 0xef, 0xbe}, 30_000)
	odd.Behind = 86_400_000e6
	odd.Bytes = 0
	for _, r := range odd.Records {
		odd.Bytes += len(r.Data) + len(r.Key)
	}
	end := answers.Sample(2, 7)
	end.Next = ""
	end.Children = []types.ChildShard{{
		ShardId: aws.String("shardId-000000000002"), ParentShards: []string{"shardId-000000000000", "shardId-000000000001"},
		HashKeyRange: &types.HashKeyRange{StartingHashKey: aws.String("0"), EndingHashKey: aws.String("340282366920938463463374607431768211455")},
	}}
	return map[string]*codec.Page{
		"empty, at the tip": {Next: "AAAA", Behind: 0},
		"says nothing":      {Behind: -1},
		"one record":        answers.Sample(1, 100),
		"many records":      answers.Sample(300, 90),
		"sizes of base64":   sizes(),
		"odd records":       odd,
		"end of a shard":    end,
	}
}

func sizes() *codec.Page {
	p := answers.Sample(70, 70)
	p.Bytes = 0
	for i := range p.Records {
		p.Records[i].Data = p.Records[i].Data[:i]
		p.Bytes += i + len(p.Records[i].Key)
	}
	return p
}

func TestCBORInEveryStyle(t *testing.T) {
	reversed := slices.Clone(answers.UsualOrder)
	slices.Reverse(reversed)
	styles := map[string]answers.CBOR{
		"definite":                        {},
		"indefinite":                      {Open: true},
		"in chunks":                       {Chunks: true},
		"indefinite and in chunks":        {Open: true, Chunks: true},
		"other order":                     {Order: reversed},
		"alphabetical":                    {Order: slices.Sorted(slices.Values(answers.UsualOrder)), Last: true},
		"unknown members":                 {Extra: true, Open: true},
		"times without tag":               {Untagged: true},
		"times as floats":                 {Float: true},
		"times in seconds":                {Seconds: true},
		"base64 text":                     {TextData: true},
		"base64 text in chunks":           {TextData: true, Chunks: true},
		"null keys and encryption always": {NullKey: true, Encryption: true},
	}
	for style, st := range styles {
		for name, want := range pages() {
			t.Run(style+"/"+name, func(t *testing.T) {
				body := st.Encode(want)
				var got codec.Page
				answers.Decode(t, codec.CBOR, bytes.Clone(body), &got)
				if d := answers.Differ(&got, want, answers.EqualTime); d != "" {
					t.Error(d)
				}
				if got.Text != (st.TextData && len(want.Records) > 0) {
					t.Errorf("text is %v", got.Text)
				}
				n, err := answers.NaiveDecode(body)
				if err != nil {
					t.Fatal(err)
				}
				if d := answers.Differ(&got, n, answers.EqualTime); d != "" {
					t.Error("unlike the naive reader: ", d)
				}
			})
		}
	}
}

func TestJSONInEveryStyle(t *testing.T) {
	reversed := slices.Clone(answers.UsualOrder)
	slices.Reverse(reversed)
	styles := map[string]answers.JSON{
		"usual":             {},
		"other order":       {Order: reversed},
		"exponents":         {Time: "e"},
		"blanks":            {Blanks: true},
		"unknown members":   {Extra: true},
		"slashes escaped":   {Slash: true},
		"all texts escaped": {Escape: true},
	}
	for style, st := range styles {
		for name, want := range pages() {
			t.Run(style+"/"+name, func(t *testing.T) {
				body := st.Encode(want)
				var got codec.Page
				answers.Decode(t, codec.JSON, bytes.Clone(body), &got)
				if d := answers.Differ(&got, want, answers.EqualTime); d != "" {
					t.Error(d)
				}
				out, err := answers.SDKDecode(codec.JSON, body)
				if err != nil {
					t.Fatal(err)
				}
				if d := answers.Differ(&got, answers.FromSDK(codec.JSON, out), answers.EqualTime); d != "" {
					t.Error("unlike the SDK: ", d)
				}
			})
		}
	}
}

// The records have up to 273 bytes of data, on both sides of two length boundaries of CBOR. Most of
// them are read with a predicted layout.
func TestPredictionNeverChangesTheResult(t *testing.T) {
	want := answers.Sample(40, 300)
	for i := range want.Records {
		r := &want.Records[i]
		want.Bytes -= len(r.Data)
		r.Data = r.Data[:i*7]
		want.Bytes += len(r.Data)
		switch i % 7 { // interrupt the prediction in several ways
		case 3:
			want.Bytes -= len(r.Key)
			r.Key = ""
		case 5:
			r.Encrypted = true
		case 6:
			r.Arrival = 1000 * int64(i)
		}
	}
	for _, st := range []answers.CBOR{{}, {Open: true}, {Encryption: true, NullKey: true}} {
		var got codec.Page
		answers.Decode(t, codec.CBOR, st.Encode(want), &got)
		if d := answers.Differ(&got, want, func(a, b int64) bool { return a == b || b < 1e11 && a == 1000*b }); d != "" {
			t.Error(d)
		}
	}
}

func TestMalformedAnswersAreRefused(t *testing.T) {
	list := func(items string) string { return "\xa1\x67Records" + items }
	cases := map[string]struct {
		format codec.Format
		body   string
		what   string
	}{
		"empty CBOR":                         {codec.CBOR, "", codec.ShortAnswer},
		"empty JSON":                         {codec.JSON, " \n", codec.ShortAnswer},
		"CBOR that is not a map":             {codec.CBOR, "\x81\xf6", "expected a map"},
		"JSON that is not an object":         {codec.JSON, "[]", "expected an object"},
		"null":                               {codec.JSON, "null", "expected an object"},
		"CBOR with more behind it":           {codec.CBOR, "\xa0\xa0", "more after"},
		"JSON with more behind it":           {codec.JSON, "{} x", "more after"},
		"a reserved first byte":              {codec.CBOR, "\xa1\x61a\x1c", "invalid first byte"},
		"an integer of unknown length":       {codec.CBOR, "\xa1\x61a\x1f", "invalid first byte"},
		"a break for a value":                {codec.CBOR, "\xbf\x61a\xff", "break"},
		"a short simple value":               {codec.CBOR, "\xa1\x61a\xf8\x10", "simple value"},
		"a list longer than the answer":      {codec.CBOR, list("\x9b\xff\xff\xff\xff\xff\xff\xff\xff"), codec.ShortAnswer},
		"a map longer than the answer":       {codec.CBOR, "\xbb\xff\xff\xff\xff\xff\xff\xff\xff", codec.ShortAnswer},
		"a string longer than the answer":    {codec.CBOR, "\xa1\x71NextShardIterator\x7b\x7f\xff\xff\xff\xff\xff\xff\xff", codec.ShortAnswer},
		"a skipped string too long":          {codec.CBOR, "\xa1\x61a\x7b\xff\xff\xff\xff\xff\xff\xff\xff", codec.ShortAnswer},
		"a chunk of another kind":            {codec.CBOR, "\xa1\x71NextShardIterator\x7f\x41a\xff", "chunk"},
		"chunks in chunks":                   {codec.CBOR, "\xa1\x61a\x7f\x7f\xff\xff", "chunk"},
		"chunks without an end":              {codec.CBOR, "\xa1\x71NextShardIterator\x7f\x61a", codec.ShortAnswer},
		"nothing but tags":                   {codec.CBOR, "\xa1\x61a" + strings.Repeat("\xc1", 40), "tags"},
		"nested CBOR":                        {codec.CBOR, "\xa1\x61a" + strings.Repeat("\x81", 200) + "\x00", "nested"},
		"nested JSON":                        {codec.JSON, `{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "}", "nested"},
		"too many records":                   {codec.CBOR, list("\x9a\x00\x01\x00\x01" + strings.Repeat("\xf6", 1<<16+1)), "too many records"},
		"too many records, one by one":       {codec.CBOR, list("\x9f" + strings.Repeat("\xf6", 1<<16+1) + "\xff"), "too many records"},
		"too many records in JSON":           {codec.JSON, `{"Records":[` + strings.Repeat("null,", 1<<16) + "null]}", "too many records"},
		"too many children":                  {codec.JSON, `{"ChildShards":[` + strings.Repeat("{},", 1<<10) + "{}]}", "too many child"},
		"too many parents":                   {codec.JSON, `{"ChildShards":[{"ParentShards":[` + strings.Repeat(`"",`, 1<<6) + `""]}]}`, "too many parent"},
		"a long iterator":                    {codec.JSON, `{"NextShardIterator":"` + strings.Repeat("A", 1<<16+1) + `"}`, "64 KiB"},
		"data as a map":                      {codec.CBOR, list("\x81\xa1\x64Data\xa1\x64type\x66Buffer"), "expected bytes"},
		"data as text that is not base64":    {codec.CBOR, list("\x81\xa1\x64Data\x64abc-"), "not base64"},
		"a key that is bytes":                {codec.CBOR, list("\x81\xa1\x6cPartitionKey\x41a"), "expected text"},
		"a time that is text":                {codec.CBOR, list("\x81\xa1\x78\x1bApproximateArrivalTimestamp\x61a"), "expected a number"},
		"a time beyond all times":            {codec.CBOR, list("\x81\xa1\x78\x1bApproximateArrivalTimestamp\x1b\x7f\xff\xff\xff\xff\xff\xff\xff"), "out of range"},
		"a time that is not a number":        {codec.CBOR, list("\x81\xa1\x78\x1bApproximateArrivalTimestamp\xf9\x7e\x00"), "out of range"},
		"an integer beyond 63 bits":          {codec.CBOR, "\xa1\x72MillisBehindLatest\x1b\xff\xff\xff\xff\xff\xff\xff\xff", "out of range"},
		"a distance that is not a number":    {codec.CBOR, "\xa1\x72MillisBehindLatest\xf9\x7c\x00", "out of range"},
		"a distance with a fraction":         {codec.JSON, `{"MillisBehindLatest":1.5}`, "whole number"},
		"a distance beyond 63 bits":          {codec.JSON, `{"MillisBehindLatest":9223372036854775808}`, "out of range"},
		"a time in JSON beyond all times":    {codec.JSON, `{"Records":[{"ApproximateArrivalTimestamp":1e99}]}`, "out of range"},
		"an absurd exponent":                 {codec.JSON, `{"Records":[{"ApproximateArrivalTimestamp":1e99999999999999999999}]}`, "out of range"},
		"a number with a leading zero":       {codec.JSON, `{"a":01}`, "expected a number"},
		"a number without digits":            {codec.JSON, `{"a":-}`, "expected a number"},
		"a number that ends in a dot":        {codec.JSON, `{"a":1.}`, "expected a number"},
		"a number that ends in e":            {codec.JSON, `{"a":1e+}`, "expected a number"},
		"a member without a value":           {codec.JSON, `{"a":}`, "expected a number"},
		"a comma at the end":                 {codec.JSON, `{"a":1,}`, "expected a string"},
		"a comma at the end of a list":       {codec.JSON, `{"a":[1,]}`, "expected a number"},
		"no comma":                           {codec.JSON, `{"a":1 "b":2}`, "comma"},
		"no colon":                           {codec.JSON, `{"a" 1}`, "colon"},
		"a misspelt null":                    {codec.JSON, `{"a":nul0}`, "expected null"},
		"a control character":                {codec.JSON, "{\"a\":\"x\ty\"}", "control"},
		"a control character after escapes":  {codec.JSON, "{\"a\":\"\\n\x01\"}", "control"},
		"a control character in data":        {codec.JSON, "{\"Records\":[{\"Data\":\"AAAA\n\"}]}", "control"},
		"an unknown escape":                  {codec.JSON, `{"a":"\q"}`, "escape"},
		"invalid hex digits":                 {codec.JSON, `{"a":"\u12g4"}`, "escape"},
		"base64 that ends in a group":        {codec.JSON, `{"Records":[{"Data":"AAAAA"}]}`, "not base64"},
		"base64 with padding alone":          {codec.JSON, `{"Records":[{"Data":"="}]}`, "not base64"},
		"base64 with padding in the middle":  {codec.JSON, `{"Records":[{"Data":"AA==AAAA"}]}`, "not base64"},
		"base64 with half of its padding":    {codec.JSON, `{"Records":[{"Data":"AA="}]}`, "not base64"},
		"base64 with an escaped quote":       {codec.JSON, `{"Records":[{"Data":"AAAA\"AAA"}]}`, "not base64"},
		"base64 with an escape beyond ASCII": {codec.JSON, `{"Records":[{"Data":"AAAA\u0141AAA"}]}`, "not base64"},
		"a string without an end":            {codec.JSON, `{"a":"b`, codec.ShortAnswer},
		"data without an end":                {codec.JSON, `{"Records":[{"Data":"AAAA`, codec.ShortAnswer},
		"half an escape":                     {codec.JSON, `{"a":"\u12`, codec.ShortAnswer},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := answers.Sample(3, 3)
			err := codec.Decode(c.format, []byte(c.body), p)
			malformed := (*codec.MalformedError)(nil)
			if !errors.As(err, &malformed) || malformed.Format != c.format || !strings.Contains(err.Error(), c.what) {
				t.Fatalf("error is %v, want one about %q", err, c.what)
			}
			if malformed.Offset < 0 || malformed.Offset > len(c.body) {
				t.Errorf("offset %d of %d", malformed.Offset, len(c.body))
			}
			if len(p.Records) != 0 || p.Next != "" || p.Children != nil || p.Bytes != 0 || p.Behind != -1 {
				t.Errorf("the page is not empty: %+v", p)
			}
			if r := p.Records[:3]; r[0].Data != nil || r[2].Key != "" {
				t.Error("slots still hold what was there before")
			}
		})
	}
}

func TestEveryPrefixOfAnAnswerIsRefused(t *testing.T) {
	want := pages()["end of a shard"]
	bodies := map[codec.Format][][]byte{
		codec.CBOR: {answers.CBOR{Extra: true}.Encode(want), answers.CBOR{Open: true, Chunks: true}.Encode(want)},
		codec.JSON: {answers.JSON{Extra: true}.Encode(want), answers.JSON{Escape: true}.Encode(want)},
	}
	for f, all := range bodies {
		for _, body := range all {
			for n := range body {
				var p codec.Page
				err := codec.Decode(f, bytes.Clone(body[:n]), &p)
				if malformed := (*codec.MalformedError)(nil); !errors.As(err, &malformed) || !malformed.Short() {
					t.Fatalf("%s cut after %d of %d bytes: %v", f, n, len(body), err)
				}
			}
		}
	}
}

func TestTimes(t *testing.T) {
	for text, want := range map[string]int64{
		"1718549822.123": 1_718_549_822_123, "1.718549822123E9": 1_718_549_822_123, "1718549822123e-3": 1_718_549_822_123,
		"1718549822": 1_718_549_822_000, "0": 0, "-0": 0, "0.0": 0, "1e0": 1000, "1.5": 1500, "-1.5": -1500, "17.18549822123E+08": 1_718_549_822_123,
		"1718549822.1239999": 1_718_549_822_123, "0.0000000000000000000000000000017185498221239e39": 1_718_549_822_123,
		"171854982212300000000000000000e-20": 1_718_549_822_123, "0e999999999999": 0, "1e-999999999999": 0,
	} {
		var p codec.Page
		answers.Decode(t, codec.JSON, fmt.Appendf(nil, `{"Records":[{"ApproximateArrivalTimestamp":%s}]}`, text), &p)
		if got := p.Records[0].Arrival; got != want {
			t.Errorf("%s is %d, want %d", text, got, want)
		}
	}
}

func TestRecordsHaveNoSpareCapacity(t *testing.T) {
	want := answers.Sample(20, 50)
	for f, body := range map[codec.Format][]byte{codec.CBOR: answers.CBOR{}.Encode(want), codec.JSON: answers.JSON{}.Encode(want)} {
		var p codec.Page
		answers.Decode(t, f, body, &p)
		for i := range p.Records {
			p.Records[i].Data = append(p.Records[i].Data, "overwritten?"...)
		}
		for i, r := range p.Records {
			if !bytes.Equal(r.Data[:50], want.Records[i].Data) || r.Key != want.Records[i].Key {
				t.Fatalf("%s: appending to the data of a record changed record %d", f, i)
			}
		}
	}
}

func TestEvents(t *testing.T) {
	body := `{"ContinuationSequenceNumber":"123","NextShardIterator":"x","MillisBehindLatest":5,"Records":[]}`
	var p codec.Page
	if err := codec.DecodeEvent(codec.JSON, []byte(body), &p); err != nil || p.Next != "123" {
		t.Errorf("the event's continuation is %q, %v", p.Next, err)
	}
	answers.Decode(t, codec.JSON, []byte(body), &p)
	if p.Next != "x" {
		t.Errorf("the answer's iterator is %q", p.Next)
	}
}

func TestReusedPagesKeepNothing(t *testing.T) {
	var p codec.Page
	answers.Decode(t, codec.CBOR, answers.CBOR{}.Encode(answers.Sample(50, 10)), &p)
	room := cap(p.Records)
	answers.Decode(t, codec.CBOR, answers.CBOR{}.Encode(answers.Sample(3, 10)), &p)
	if len(p.Records) != 3 || cap(p.Records) != room {
		t.Fatalf("%d of %d records, had room for %d", len(p.Records), cap(p.Records), room)
	}
	for i, r := range p.Records[:50][3:] {
		if r.Data != nil || r.Key != "" || r.SequenceNumber != "" {
			t.Fatalf("slot %d still refers to the answer before", 3+i)
		}
	}
	kept := p.Records
	p.Release()
	p.Release()
	if p.Records != nil || len(kept) != 3 || len(kept[2].Data) != 10 {
		t.Error("Release kept the records, or took them from whoever has them")
	}
	p.Records = kept
	if p.Reset(); len(p.Records) != 0 || kept[2].Data != nil {
		t.Error("the slots still refer to the answer before")
	}
}

// Decoding a page of a thousand records needs few allocations.
func TestAllocationsOfAPage(t *testing.T) {
	for _, c := range []struct {
		name string
		f    codec.Format
		body []byte
		most float64
	}{
		{"cbor", codec.CBOR, answers.CBOR{}.Encode(answers.Sample(1000, 100)), 8},
		{"cbor, indefinite", codec.CBOR, answers.CBOR{Open: true}.Encode(answers.Sample(1000, 100)), 10},
		{"json", codec.JSON, answers.JSON{}.Encode(answers.Sample(1000, 100)), 10},
		{"json, two escapes in each record", codec.JSON, answers.JSON{Slash: true, Escape: true}.Encode(answers.Sample(1000, 100)), 10},
	} {
		work := make([]byte, len(c.body))
		fresh := testing.AllocsPerRun(5, func() {
			copy(work, c.body)
			var p codec.Page
			answers.Decode(t, c.f, work, &p)
		})
		var p codec.Page
		reused := testing.AllocsPerRun(5, func() {
			copy(work, c.body)
			answers.Decode(t, c.f, work, &p)
		})
		if t.Logf("%s: %v allocations a page of 1,000 records, %v with the slice reused", c.name, fresh, reused); fresh > c.most || reused > 5 {
			t.Errorf("%s: %v allocations, want at most %v; %v with the slice reused, want at most 5", c.name, fresh, c.most, reused)
		}
	}
}
