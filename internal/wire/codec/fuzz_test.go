package codec_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/answers"
	"github.com/weir-go/weir/internal/wire/codec"
)

// smallPages returns pages that are small enough as seeds for a fuzzer.
func smallPages() []*codec.Page {
	all := pages()
	small := []*codec.Page{answers.Sample(3, 20)}
	for _, name := range []string{"empty, at the tip", "says nothing", "one record", "end of a shard"} {
		small = append(small, all[name])
	}
	return small
}

// FuzzCBOR compares the reader with a naive reader of all of CBOR. Both accept the same input, with
// the same result, unless it exceeds a limit of the reader. If the SDK accepts the input as well,
// its result is also the same.
func FuzzCBOR(f *testing.F) {
	for _, p := range smallPages() {
		for _, st := range []answers.CBOR{{}, {Open: true, Chunks: true}, {Extra: true}, {TextData: true, Float: true}, {NullKey: true, Encryption: true, Seconds: true}} {
			f.Add(st.Encode(p))
		}
	}
	f.Add([]byte("\xa1\x67Records\x83\xf6\xa0\xc1\xa1\x64Data\x40"))
	f.Fuzz(func(t *testing.T, body []byte) {
		var p codec.Page
		err := codec.Decode(codec.CBOR, bytes.Clone(body), &p)
		if malformed := (*codec.MalformedError)(nil); err != nil && !errors.As(err, &malformed) {
			t.Fatalf("the error is a %T", err)
		}
		want, naiveErr := answers.NaiveDecode(body)
		switch {
		case err == nil && naiveErr != nil:
			t.Fatalf("accepted: %+v", p)
		case err != nil && naiveErr == nil:
			if !answers.Bounded(err) {
				t.Fatalf("refused: %v", err)
			}
			return
		case err != nil:
			return
		}
		if d := answers.Differ(&p, want, answers.EqualTime); d != "" {
			t.Fatal("unlike the naive reader: ", d)
		}
		out, err := answers.SDKDecode(codec.CBOR, body)
		if err != nil {
			return // the SDK does not support times without a tag, strings in chunks, and more
		}
		if d := answers.Differ(&p, answers.FromSDK(codec.CBOR, out), likeSDKTime); d != "" {
			t.Fatal("unlike the SDK: ", d)
		}
	})
}

// likeSDKTime compares a time with the SDK's result. In the SDK's CBOR an integer means seconds,
// but in Kinesis it means milliseconds. Times that the SDK cannot represent count as equal.
func likeSDKTime(got, sdk int64) bool {
	if sdk <= answers.MinArrival || sdk >= answers.MaxArrival*1000 {
		return true
	}
	return got == sdk || got*1000 == sdk || got == sdk-1 || got == sdk+1 || (got*1000 <= sdk+1000 && got*1000 >= sdk-1000)
}

// FuzzJSON checks that the reader and the SDK read the same from an answer, or both reject it. The
// reader also rejects some answers that the SDK accepts. These are empty answers and answers with
// trailing data, invalid times, or values above a limit.
func FuzzJSON(f *testing.F) {
	for _, p := range smallPages() {
		for _, st := range []answers.JSON{{}, {Blanks: true, Time: "e"}, {Extra: true, Time: "int"}, {Escape: true, Slash: true}} {
			f.Add(st.Encode(p))
		}
	}
	for _, s := range []string{
		`{"Records":[null,{},{"Data":"","Data":null,"PartitionKey":"a","PartitionKey":"\ud834\u0041\u0000"}]}`,
		`{"Records":[{"Data":"\u0041AA\n=","ApproximateArrivalTimestamp":1e9,"Encryption\u0054ype":"KM\u0053"}],"MillisBehindLatest":-9223372036854775808}`,
		`{"Records":[{"ApproximateArrivalTimestamp":96600179822}]}`,
		`{"ChildShards":[null,{"ParentShards":[null,"a"],"HashKeyRange":{}}],"NextShardIterator":"` + "\xff\\n\xff" + `"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var p codec.Page
		err := codec.Decode(codec.JSON, bytes.Clone(body), &p)
		malformed := (*codec.MalformedError)(nil)
		if err != nil && !errors.As(err, &malformed) {
			t.Fatalf("the error is a %T", err)
		}
		if err != nil && strings.Contains(err.Error(), "more after") {
			// The SDK ignores the bytes after the answer. The bytes before them must have the same
			// result.
			body = body[:malformed.Offset]
			if err := codec.Decode(codec.JSON, bytes.Clone(body), &p); err != nil {
				t.Fatalf("without what follows: %v", err)
			}
			err = nil
		}
		out, sdkErr := answers.SDKDecode(codec.JSON, body)
		switch {
		case err == nil && sdkErr != nil:
			t.Fatalf("accepted, but the SDK says %v", sdkErr)
		case err != nil && sdkErr == nil:
			want := answers.FromSDK(codec.JSON, out)
			for _, r := range want.Records {
				if r.Arrival == answers.OddTime {
					return
				}
			}
			if len(body) > 0 && !answers.Bounded(err) && !strings.Contains(err.Error(), "a time out of range") && !oddNumber(body, malformed) {
				t.Fatalf("refused: %v", err)
			}
			return
		case err != nil:
			return
		}
		if d := answers.Differ(&p, answers.FromSDK(codec.JSON, out), func(got, sdk int64) bool {
			// The SDK rounds below a millisecond. It counts nanoseconds, which only reach the year
			// 2262.
			const most = math.MaxInt64 / int64(time.Millisecond)
			return sdk == answers.OddTime || got == sdk || got == sdk-1 || got == sdk+1 || got > most || got < -most
		}); d != "" {
			t.Fatal("unlike the SDK: ", d)
		}
	})
}

// oddNumber reports whether a number was rejected because it is a text. The SDK accepts the texts
// "NaN" and "Infinity" as times.
func oddNumber(body []byte, err *codec.MalformedError) bool {
	return err.What == "expected a number" && err.Offset < len(body) && body[err.Offset] == '"'
}

// FuzzPages checks that a page in any style is read back unchanged. It covers predicted layouts,
// which random bytes rarely do.
func FuzzPages(f *testing.F) {
	for i := range uint16(12) {
		f.Add(uint64(i), i<<i, "key \u00e9")
	}
	f.Fuzz(func(t *testing.T, seed uint64, flags uint16, key string) {
		if len(key) > 1000 || strings.ToValidUTF8(key, "") != key {
			return
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		flag := func() bool { flags = flags>>1 | flags<<15; return flags&1 == 1 }
		p := answers.Sample(rng.IntN(20), rng.IntN(300))
		p.Bytes = 0
		for i := range p.Records {
			r := &p.Records[i]
			r.Data = r.Data[:rng.IntN(len(r.Data)+1)]
			if rng.IntN(4) == 0 {
				r.Key = key
			}
			r.Encrypted = rng.IntN(3) == 0
			p.Bytes += len(r.Data) + len(r.Key)
		}
		order := append([]string(nil), answers.UsualOrder...)
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		st := answers.CBOR{
			Open: flag(), Chunks: flag(), Order: order, Extra: flag(), TextData: flag(), Untagged: flag(), Float: flag(),
			NullKey: flag(), Encryption: flag(), Last: flag(),
		}
		var got codec.Page
		answers.Decode(t, codec.CBOR, st.Encode(p), &got)
		if d := answers.Differ(&got, p, answers.EqualTime); d != "" {
			t.Fatalf("CBOR %+v: %s", st, d)
		}
		js := answers.JSON{Order: order, Extra: flag(), Slash: flag(), Escape: flag()}
		if strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f || r > 0x7e }) {
			js.Escape = true // strconv.Quote uses escapes for these characters that JSON does not have
		}
		if flag() {
			js.Time = "e"
		}
		answers.Decode(t, codec.JSON, js.Encode(p), &got)
		if d := answers.Differ(&got, p, answers.EqualTime); d != "" {
			t.Fatalf("JSON %+v: %s", js, d)
		}
	})
}

// FuzzErrorBody reads the bodies of errors. The error is nil or a MalformedError.
func FuzzErrorBody(f *testing.F) {
	for _, s := range []string{
		`{"__type":"com.amazonaws.kinesis.v20131202#ExpiredIteratorException","message":"old"}`, `{"code":"X","Message":"y"}`, "", "<html>",
		"\xa2\x66__type\x78\x26ProvisionedThroughputExceededException\x67message\x61x", "\xbf\x67Message\x7f\x61x\xff\xff",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, format := range []codec.Format{codec.CBOR, codec.JSON} {
			_, _, err := codec.ReadError(format, bytes.Clone(body))
			if malformed := (*codec.MalformedError)(nil); err != nil && !errors.As(err, &malformed) {
				t.Fatalf("the error is a %T", err)
			}
		}
	})
}
