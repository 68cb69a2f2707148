package wire

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/internal/proof/answers"
	"github.com/weir-go/weir/internal/wire/codec"
)

func TestHowAFormatIsChosen(t *testing.T) {
	const now, later = true, false
	cases := []struct {
		name  string
		state formatState
		o     outcome
		to    formatState
		again bool
	}{
		{"an empty page proves nothing", cborUntried, readEmpty, cborUntried, later},
		{"a record proves CBOR", cborUntried, readRecords, cborProven, later},
		{"text instead of bytes leads to JSON", cborUntried, readText, jsonTrial, later},
		{"refused at first, JSON is tried at once", cborUntried, refused, jsonTrial, now},
		{"a throttle says nothing", cborUntried, unrelated, cborUntried, later},
		{"proven stays proven", cborProven, readEmpty, cborProven, later},
		{"proven stays proven, with records", cborProven, readRecords, cborProven, later},
		{"a throttle takes no proof away", cborProven, unrelated, cborProven, later},
		{"one bad answer may be an accident", cborProven, refused, cborUntried, later},
		{"even proven, text is text", cborProven, readText, jsonTrial, later},
		{"JSON that works is settled", jsonTrial, readEmpty, jsonSettled, later},
		{"JSON with records is settled", jsonTrial, readRecords, jsonSettled, later},
		{"JSON that is throttled stays on trial", jsonTrial, unrelated, jsonTrial, later},
		{"JSON that is refused too is not the solution", jsonTrial, refused, cborUntried, later},
		{"CBOR in answer to JSON settles nothing", jsonTrial, readText, jsonTrial, later},
		{"settled is settled", jsonSettled, refused, jsonSettled, later},
		{"settled is settled, whatever comes", jsonSettled, readRecords, jsonSettled, later},
	}
	for _, c := range cases {
		if to, again := c.state.next(c.o); to != c.to || again != c.again {
			t.Errorf("%s: %d, again %v", c.name, to, again)
		}
	}
}

func TestOfCallsAtOnceOneChangesTheFormat(t *testing.T) {
	var choice formatChoice
	var mu sync.Mutex
	changes := 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if again, changed := choice.after(cborUntried, refused); !again {
				t.Error("not again")
			} else if changed == codec.JSON {
				mu.Lock()
				changes++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if changes != 1 || choice.load() != jsonTrial {
		t.Errorf("%d changes, state %d", changes, choice.load())
	}
}

// Some servers do not support CBOR or have bugs in it. Reading from them loses and repeats no
// record, and from then on JSON is requested.
func TestFallbackToJSON(t *testing.T) {
	want := answers.Sample(3, 50)
	inJSON, inCBOR := string(answers.JSON{}.Encode(want)), string(answers.CBOR{}.Encode(want))
	emptyCBOR := string(answers.CBOR{}.Encode(&codec.Page{Next: "AAAA"}))
	buffer := "\xa1\x67Records\x81\xa1\x64Data\xa2\x64type\x66Buffer\x64data\x81\x01"
	goodJSON := func(w http.ResponseWriter) { write(w, 200, codec.JSONType, inJSON) }
	cases := map[string]struct {
		cbor     func(w http.ResponseWriter)
		json     func(w http.ResponseWriter)
		calls    int    // number of calls
		formats  string // formats of the requests: c and j
		fails    int    // number of failed calls
		switched string // argument of the hook
	}{
		"unknown operation": {func(w http.ResponseWriter) { write(w, 404, codec.JSONType, `{"__type":"UnknownOperationException"}`) }, goodJSON, 3, "cjjj", 0, "json: UnknownOperation"},
		"in CBOR":           {func(w http.ResponseWriter) { write(w, 400, codec.CBORType, "\xa1\x66__type\x76SerializationException") }, goodJSON, 2, "cjj", 0, "json: Serialization"},
		"media type":        {func(w http.ResponseWriter) { write(w, 415, "text/html", "<html>no") }, goodJSON, 2, "cjj", 0, "json: 415"},
		"a page of HTML":    {func(w http.ResponseWriter) { write(w, 200, "text/html; charset=utf-8", "<html>no") }, goodJSON, 2, "cjj", 0, "json: text/html"},
		"JSON anyway":       {goodJSON, goodJSON, 2, "cj", 0, "json: "},
		"JSON without type": {func(w http.ResponseWriter) { write(w, 200, "", inJSON) }, goodJSON, 2, "cj", 0, "json: "},
		"base64 text": {func(w http.ResponseWriter) {
			write(w, 200, codec.CBORType, string(answers.CBOR{TextData: true}.Encode(want)))
		}, goodJSON, 3, "cjj", 0, "json: base64"},
		"data as maps":    {func(w http.ResponseWriter) { write(w, 200, codec.CBORType, buffer) }, goodJSON, 2, "cjj", 0, "json: bytes"},
		"an empty answer": {func(w http.ResponseWriter) { write(w, 200, codec.CBORType, "") }, goodJSON, 2, "cjj", 0, "json: too early"},
		"compressed": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "br")
			write(w, 200, codec.CBORType, "xx")
		}, goodJSON, 2, "cjj", 0, "json: br"},
		"good CBOR":          {func(w http.ResponseWriter) { write(w, 200, codec.CBORType, inCBOR) }, goodJSON, 3, "ccc", 0, ""},
		"CBOR, another type": {func(w http.ResponseWriter) { write(w, 200, "application/cbor; x=y", inCBOR) }, goodJSON, 2, "cc", 0, ""},
		"throttled": {func(w http.ResponseWriter) {
			write(w, 400, codec.CBORType, "\xa1\x66__type\x78\x26ProvisionedThroughputExceededException")
		}, goodJSON, 2, "cc", 2, ""},
		"not even JSON": {func(w http.ResponseWriter) { write(w, 400, codec.JSONType, `{"__type":"UnknownOperationException"}`) },
			func(w http.ResponseWriter) { write(w, 400, codec.JSONType, `{"__type":"UnknownOperationException"}`) }, 2, "cjcj", 2, "json: Unknown cbor: Unknown json: Unknown cbor: Unknown"},
		"JSON throttled": {func(w http.ResponseWriter) { write(w, 200, codec.CBORType, buffer) },
			func(w http.ResponseWriter) {
				write(w, 400, codec.JSONType, `{"__type":"ProvisionedThroughputExceededException"}`)
			}, 3, "cjjj", 3, "json: bytes"},
	}
	for name, c := range cases {
		for _, path := range []Path{OwnCall, UnderSDK} {
			t.Run(name+"/"+path.String(), func(t *testing.T) {
				server := newFake(t, func(w http.ResponseWriter, r seen) {
					if r.Header.Get("Content-Type") == codec.CBORType {
						c.cbor(w)
					} else {
						c.json(w)
					}
				})
				var switched []string
				caller := newCaller(t, fakeClient(server.URL), Options{Path: path, Switched: func(_ string, to codec.Format, why error) {
					switched = append(switched, fmt.Sprintf("%s: %v", to, why))
				}})
				fails := 0
				for range c.calls {
					var p codec.Page
					if err := caller.GetRecords(t.Context(), Request{Iterator: "it"}, &p); err != nil {
						fails++
					} else if d := answers.Differ(&p, want, answers.EqualTime); d != "" {
						t.Error(d)
					}
				}
				formats := ""
				for _, r := range server.take() {
					formats += map[string]string{codec.CBORType: "c", codec.JSONType: "j"}[r.Header.Get("Content-Type")]
				}
				if formats != c.formats || fails != c.fails {
					t.Errorf("asked %s with %d failures, want %s with %d", formats, fails, c.formats, c.fails)
				}
				heard := strings.Join(switched, " ")
				for _, what := range strings.Fields(c.switched) {
					if !strings.Contains(heard, what) {
						t.Errorf("the hook heard %q, nothing of %q", heard, what)
					}
				}
				if (heard == "") != (c.switched == "") || len(switched) != max(strings.Count(c.switched, "json:")+strings.Count(c.switched, "cbor:"), 0) {
					t.Errorf("the hook heard %q", heard)
				}
			})
		}
	}
	t.Run("one bad answer after good ones", func(t *testing.T) {
		answers := []string{emptyCBOR, inCBOR, inCBOR[:len(inCBOR)-1], inCBOR, emptyCBOR, "x", "x", inJSON, inJSON}
		var formats []string
		server := newFake(t, func(w http.ResponseWriter, r seen) {
			formats = append(formats, r.Header.Get("Content-Type"))
			write(w, 200, r.Header.Get("Content-Type"), answers[0])
			answers = answers[1:]
		})
		caller := newCaller(t, fakeClient(server.URL), Options{})
		var errs []bool
		for len(answers) > 0 {
			var p codec.Page
			err := caller.GetRecords(t.Context(), Request{Iterator: "it"}, &p)
			errs = append(errs, err != nil)
		}
		if want := []bool{false, false, true, false, false, true, false, false}; !slices.Equal(errs, want) {
			t.Errorf("errors %v, want %v", errs, want)
		}
		if n := slices.Index(formats, codec.JSONType); n != 7 {
			t.Errorf("JSON from request %d on, want 7", n)
		}
	})
	t.Run("a format that was chosen stays", func(t *testing.T) {
		server := newFake(t, func(w http.ResponseWriter, _ seen) { write(w, 415, "", "") })
		for _, f := range []codec.Format{codec.CBOR, codec.JSON} {
			var p codec.Page
			err := newCaller(t, fakeClient(server.URL), Options{Format: f}).GetRecords(t.Context(), Request{Iterator: "it"}, &p)
			if all := server.take(); err == nil || len(all) != 1 || all[0].Header.Get("Content-Type") != f.ContentType() {
				t.Errorf("%s: %v after %d requests", f, err, len(all))
			}
		}
	})
}

func TestErrorsAboutTheFormatKeepTheSDKsTypes(t *testing.T) {
	server := newFake(t, func(w http.ResponseWriter, _ seen) { write(w, 200, codec.CBORType, "\x00") })
	for _, path := range []Path{OwnCall, UnderSDK} {
		var p codec.Page
		err := newCaller(t, fakeClient(server.URL), Options{Path: path, Format: codec.CBOR}).GetRecords(t.Context(), Request{Iterator: "it"}, &p)
		var (
			op        *smithy.OperationError
			decode    *smithy.DeserializationError
			malformed *codec.MalformedError
		)
		if !errors.As(err, &op) || !errors.As(err, &decode) || !errors.As(err, &malformed) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
