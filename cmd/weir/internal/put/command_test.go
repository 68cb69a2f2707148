package put

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/kinesistest"
)

func TestLines(t *testing.T) {
	type line struct {
		data, key string
		number    int64
	}
	for name, c := range map[string]struct {
		in, field string
		want      []line
		err       string
	}{
		"nothing":                        {in: ""},
		"plain lines":                    {in: "a\nb\n", want: []line{{"a", "*", 1}, {"b", "*", 2}}},
		"the last line has no end":       {in: "a\nb", want: []line{{"a", "*", 1}, {"b", "*", 2}}},
		"lines of Windows":               {in: "a\r\nb\r\n", want: []line{{"a", "*", 1}, {"b", "*", 2}}},
		"empty lines are skipped":        {in: "\n\na\n\r\nb\n\n", want: []line{{"a", "*", 3}, {"b", "*", 5}}},
		"spaces are data":                {in: " a \n", want: []line{{" a ", "*", 1}}},
		"a text is the key":              {in: `{"k":"a\u00e9","x":[1]}`, field: "k", want: []line{{`{"k":"a\u00e9","x":[1]}`, "aé", 1}}},
		"a number is the key":            {in: `{"k":1.50}`, field: "k", want: []line{{`{"k":1.50}`, "1.50", 1}}},
		"a boolean is the key":           {in: `{"k":true}`, field: "k", want: []line{{`{"k":true}`, "true", 1}}},
		"no object":                      {in: "[1]\n", field: "k", err: "line 1: it is not a JSON object"},
		"null":                           {in: "null\n", field: "k", err: "line 1: it is not a JSON object"},
		"two objects on a line":          {in: `{"k":"a"}{"k":"b"}`, field: "k", err: "line 1: it is not a JSON object"},
		"no field":                       {in: "{\"k\":\"a\"}\n{}\n", field: "k", want: []line{{`{"k":"a"}`, "a", 1}}, err: `line 2: there is no field "k"`},
		"a field of null":                {in: `{"k":null}`, field: "k", err: "line 1: its field \"k\" is not a text"},
		"a field of an array":            {in: `{"k":[]}`, field: "k", err: "line 1: its field \"k\" is not a text"},
		"an empty key":                   {in: `{"k":""}`, field: "k", err: "has 0 characters"},
		"a key that is not UTF-8":        {in: "{\"k\":\"a\xff\"}", field: "k", err: `line 1: its field "k" is not valid Unicode`},
		"a key with half a surrogate":    {in: `{"k":"a\ud83d"}`, field: "k", err: `line 1: its field "k" is not valid Unicode`},
		"a key of U+FFFD itself":         {in: `{"k":"\uFFFD\\ufffd�"}`, field: "k", want: []line{{`{"k":"\uFFFD\\ufffd�"}`, "�\\ufffd�", 1}}},
		"a key with a surrogate pair":    {in: `{"k":"\ud83d\ude00"}`, field: "k", want: []line{{`{"k":"\ud83d\ude00"}`, "😀", 1}}},
		"a long line that fits":          {in: strings.Repeat("x", 990), want: []line{{strings.Repeat("x", 990), "*", 1}}},
		"a line that does not fit":       {in: "a\n" + strings.Repeat("x", 1025), want: []line{{"a", "*", 1}}, err: "line 2 is too large"},
		"a line far beyond what is read": {in: strings.Repeat("x", 1<<20), err: "line 1 is too large"},
		"a key that makes it not fit":    {in: `{"k":"` + strings.Repeat("x", 200) + `","y":"` + strings.Repeat("y", 700) + `"}`, field: "k", err: "line 1 is too large"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLines(iotest.OneByteReader(strings.NewReader(c.in)), c.field, 1024)
			var got []line
			var err error
			for {
				e, failed := l.next()
				if failed != nil {
					err = failed
					break
				}
				if c.field == "" {
					if e.Key == "" {
						t.Error("a record without a key")
					}
					e.Key = "*"
				}
				got = append(got, line{string(e.Data), e.Key, e.Line})
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("lines %v, want %v", got, c.want)
			}
			if c.err == "" && !errors.Is(err, io.EOF) || c.err != "" && !strings.Contains(err.Error(), c.err) {
				t.Errorf("ended with %v, want %q", err, c.err)
			}
			if c.err == "" && l.read != int64(len(c.in)) {
				t.Errorf("read %d bytes of %d", l.read, len(c.in))
			}
		})
	}
}

// If skipLarge is set, lines that are too large are skipped, and are never held in memory.
func TestLinesSkipLargeOnes(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	in := "a\n" + strings.Repeat("y", 1025) + "\nb\r\n" + huge + "\n\nc\n" + huge
	l := newLines(strings.NewReader(in), "", 1024)
	l.skipLarge = true
	var got []string
	for {
		e, err := l.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d:%s", e.Line, e.Data))
	}
	if want := "[1:a 3:b 6:c]"; fmt.Sprint(got) != want {
		t.Errorf("lines %v, want %s", got, want)
	}
	large := l.large.seen()
	if large != (largeLines{3, 2}) || l.skipped != 1 || l.read != int64(len(in)) {
		t.Errorf("%+v are large, %d empty; read %d of %d bytes", large, l.skipped, l.read, len(in))
	}
	failing := iotest.ErrReader(errors.New("the disk is gone"))
	broken := newLines(io.MultiReader(strings.NewReader(huge), failing), "", 1024)
	broken.skipLarge = true
	_, err := broken.next()
	if err == nil || !strings.Contains(err.Error(), "after line 0: the disk is gone") {
		t.Errorf("a broken input: %v", err)
	}
}

func TestLinesOfABrokenInput(t *testing.T) {
	l := newLines(io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(errors.New("the disk is gone"))), "", 1024)
	if _, err := l.next(); err != nil {
		t.Error(err)
	}
	if _, err := l.next(); err == nil || !strings.Contains(err.Error(), "after line 1: the disk is gone") {
		t.Errorf("a broken input: %v", err)
	}
}

// Although the stream refuses every third record that it gets, each record is stored once, and the
// records of a key are in order.
func TestPutKeepsOrderWhateverIsRefused(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 3)
	var n atomic.Int64
	server.Control("PutRecords", func(*kinesistest.Call) kinesistest.Fault {
		return kinesistest.Fault{PartialFailure: func(int) string {
			if n.Add(1)%3 == 0 {
				return "ProvisionedThroughputExceededException"
			}
			return ""
		}}
	})
	text, lines := clitest.Numbered(60)
	var summary struct{ Records, Retries int }
	if err := json.Unmarshal([]byte(clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key", "-o=json")), &summary); err != nil {
		t.Fatal(err)
	}
	if summary.Records != 60 || summary.Retries == 0 {
		t.Errorf("summary %+v: nothing was refused, or not all was put", summary)
	}
	var got []string
	for _, r := range server.Records("s") {
		got = append(got, string(r.Data))
	}
	clitest.CheckOrder(t, got, lines)
	out := clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
	if !regexp.MustCompile(`^60 records \([\d,.]+ (B|KiB)\) put into s in .* m?s, \d+ sent again because of: a shard takes 1 MiB and 1,000 records a second; nothing was lost\n`).MatchString(out) {
		t.Errorf("it says %s", out)
	}
}

func TestPutSaysHowFarItGot(t *testing.T) {
	t.Run("when the server goes away", func(t *testing.T) {
		server, endpoint := clitest.Kinesis(t)
		server.CreateStream("s", 1)
		server.Control("PutRecords", func(c *kinesistest.Call) kinesistest.Fault {
			return kinesistest.Fault{Err: map[bool]*kinesistest.Error{true: {Code: "ResourceNotFoundException", Message: "gone"}}[c.N > 3]}
		})
		text, _ := clitest.Numbered(50)
		c := clitest.Start(t, text, "put", endpoint, "--stream=s", "--key=key")
		if code := c.Wait(t); code != cli.ExitFailed || !strings.Contains(c.Err.String(), fmt.Sprintf("%d records were put: every line up to", len(server.Records("s")))) {
			t.Errorf("exit code %d, %s; there are %d records", code, c.Err, len(server.Records("s")))
		}
	})
	t.Run("when it is interrupted while it waits for input", func(t *testing.T) {
		server, endpoint := clitest.Kinesis(t)
		server.CreateStream("s", 1)
		in, writer := io.Pipe()
		defer func() { _ = writer.Close() }()
		c := clitest.StartTo(t, clitest.NewOutput(), in, "put", endpoint, "--stream=s", "-")
		if _, err := io.WriteString(writer, "one\ntwo\n"); err != nil {
			t.Fatal(err)
		}
		tail := clitest.Start(t, "", "tail", endpoint, "--stream=s", "--from=oldest", "--limit=2")
		if code := tail.Wait(t); code != cli.ExitDone { // so they were put while more may come
			t.Fatalf("tail: exit code %d, %s", code, tail.Err)
		}
		if code := c.Interrupt(t); code != cli.ExitFailed || !strings.Contains(c.Err.String(), "2 records were put: every line up to 2") {
			t.Errorf("exit code %d, %s", code, c.Err)
		}
	})
}

func TestPutSpreadsRecordsWithoutKey(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 2)
	clitest.MustRun(t, strings.Repeat("line\n", 100), "put", endpoint, "--stream=s")
	shards := map[string]int{}
	for _, r := range server.Records("s") {
		shards[r.Shard]++
	}
	if len(shards) != 2 {
		t.Errorf("100 records without a key went to %v", shards)
	}
}

// The text names each reason for which records were sent again.
func TestPutNamesEachReason(t *testing.T) {
	for want, refusals := range map[string]map[string]uint64{
		"": nil,
		" because of: the service did not answer; nothing was lost":                                              {"": 3},
		" because of: InternalFailure; nothing was lost":                                                         {"InternalFailure": 3},
		" because of: a shard takes 1 MiB and 1,000 records a second; nothing was lost":                          {"ProvisionedThroughputExceededException": 2},
		" because of: InternalFailure (1), a shard takes 1 MiB and 1,000 records a second (2); nothing was lost": {"ProvisionedThroughputExceededException": 2, "InternalFailure": 1},
	} {
		if got := resent(Summary{Refusals: refusals}); got != want {
			t.Errorf("%v: %q, want %q", refusals, got, want)
		}
	}
	moved := Summary{Refusals: map[string]uint64{"": 1}, Misplaced: 1234}
	want := " because of: the service did not answer (1), " +
		"a shard was split or merged (1,234); nothing was lost"
	if got := resent(moved); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// With --aggregate the lines are packed. A consumer gets each line once, and the lines of a key in
// order.
func TestPutAggregates(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 2)
	text, lines := clitest.Numbered(500)
	out := clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key", "--aggregate")
	stored := len(server.Records("s"))
	want := fmt.Sprintf("packed into %d records of the stream, 0 sent again", stored)
	if stored > 50 || !strings.Contains(out, want) {
		t.Errorf("the stream has %d records; it says %s", stored, out)
	}
	got := clitest.MustRun(t, "", "tail", endpoint, "--stream=s", "--from=oldest", "--limit=500")
	clitest.CheckOrder(t, strings.Split(strings.TrimSuffix(got, "\n"), "\n"), lines)
}

// Lines are compressed after their keys are read. A line may be larger than a record if it fits
// when it is compressed. Lines that compression does not make smaller stay as they are.
func TestPutCompresses(t *testing.T) {
	t.Parallel()
	for _, codec := range []string{"gzip", "zstd"} {
		t.Run(codec, func(t *testing.T) {
			t.Parallel()
			testCompression(t, codec)
		})
	}
}

func testCompression(t *testing.T, codec string) {
	t.Helper()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream(codec, 1)
	random := make([]byte, 100<<10)
	for i := range random {
		random[i] = byte('A' + rand.IntN(26)) // five bits in eight
	}
	lines := []string{
		`{"k":"a","text":"` + strings.Repeat("coffee ", 1000) + `"}`, `{"k":"b"}`,
		`{"k":"c","text":"` + strings.Repeat("tea ", 1<<20) + `"}`,
		`{"k":"d","text":"` + string(random) + `"}`,
	}
	args := []string{"put", endpoint, "--stream=" + codec, "--key=k", "--compress=" + codec}
	out := clitest.MustRun(t, strings.Join(lines, "\n"), args...)
	if !strings.Contains(out, "4 records (compressed from 4.1 MiB to ") {
		t.Errorf("%s: %s", codec, out)
	}
	var total int
	stored := server.Records(codec)
	for i, r := range stored {
		if total += len(r.Data); r.PartitionKey != string(lines[i][6]) || i == 1 && string(r.Data) != lines[i] {
			t.Errorf("%s: record %d has the key %s, and %.40q", codec, i, r.PartitionKey, r.Data)
		}
	}
	got := clitest.MustRun(t, "", "tail", endpoint, "--stream="+codec, "--until-tip", "--decode=zstd,gzip")
	if got != strings.Join(lines, "\n")+"\n" || len(stored) != 4 || total > 200<<10 {
		t.Errorf("%s: %d records with %d bytes; tail printed %d bytes", codec, len(stored), total, len(got))
	}
	large := make([]byte, 5<<18)
	for i := range large {
		large[i] = byte('!' + rand.IntN(90)) // 6.5 bits in eight
	}
	_, out, said := clitest.Answered(t, "x\n"+string(large), "put", endpoint, "--stream="+codec, "--compress="+codec)
	if out != "" || !strings.Contains(said, "line 2 is too large, also when it is compressed: the stream takes records of up to 1024 KiB") {
		t.Errorf("%s: %s%s", codec, out, said)
	}
	_, out, said = clitest.Answered(t, "x\n"+string(large)+"\ny\n", "put", endpoint, "--stream="+codec, "--compress="+codec, "--on-too-large=skip")
	if !strings.Contains(out, "2 records") || !strings.Contains(out, "1 line skipped as too large (first: line 2)") {
		t.Errorf("%s: %s%s", codec, out, said)
	}
}

// If a stream distributes records regardless of their keys, put does not pack the records, and
// reports that.
func TestPutDoesNotAggregateForAUTO(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	_, err := server.Client().CreateStream(t.Context(), &kinesis.CreateStreamInput{
		StreamName:                 aws.String("s"),
		StreamModeDetails:          &types.StreamModeDetails{StreamMode: types.StreamModeOnDemand},
		RecordDistributionStrategy: types.RecordDistributionStrategyAuto,
	})
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"put", endpoint, "--stream=s", "--aggregate"}
	code, _, said := clitest.Answered(t, strings.Repeat("line\n", 20), args...)
	n := len(server.Records("s"))
	if code != cli.ExitDone || n != 20 || !strings.Contains(said, "lines are not packed") {
		t.Errorf("exit code %d, %d records; it says %s", code, n, said)
	}
}

// The summary names each reason, in the text and in JSON.
func TestPutSummary(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	server.Control("PutRecords", func(c *kinesistest.Call) kinesistest.Fault {
		code := map[int]string{1: "InternalFailure", 2: "ProvisionedThroughputExceededException"}[c.N]
		return kinesistest.Fault{PartialFailure: func(int) string { return code }}
	})
	text := "a\n\n" + strings.Repeat("x", 1<<20) + "\nb\n"
	var sum struct {
		Records, Retries int
		Reasons          map[string]int `json:"retry_reasons"`
		Empty            int            `json:"empty_lines"`
		Large            int            `json:"too_large_lines"`
		Stored           int            `json:"stream_records"`
	}
	args := []string{"put", endpoint, "--stream=s", "--on-too-large=skip"}
	out := clitest.MustRun(t, text, append(args, "-o=json")...)
	if err := json.Unmarshal([]byte(out), &sum); err != nil {
		t.Fatal(err)
	}
	if sum.Records != 2 || sum.Empty != 1 || sum.Large != 1 || sum.Stored != 2 ||
		len(sum.Reasons) != 2 || sum.Reasons["InternalFailure"] == 0 {
		t.Errorf("the summary is %s", out)
	}
	want := "1 empty line skipped, 1 line skipped as too large (first: line 3)"
	if out := clitest.MustRun(t, text, args...); !strings.Contains(out, want) {
		t.Errorf("%s lacks %q", out, want)
	}
	code, out, said := clitest.Answered(t, text, append(args, "-q")...)
	if code != cli.ExitDone || out != "" || !strings.Contains(said, "2 records were put: every line up to 4, 1 line skipped as too large") {
		t.Errorf("with -q, exit code %d, %q and %q", code, out, said)
	}
	if code, out, said := clitest.Answered(t, "a\n", "put", endpoint, "--stream=s", "-q"); code != cli.ExitDone || out != "" || strings.Contains(said, "record") {
		t.Errorf("with -q, exit code %d, %q and %q", code, out, said)
	}
	code, _, said = clitest.Answered(t, text, "put", endpoint, "--stream=s")
	if code != cli.ExitFailed || !strings.Contains(said, "line 3 is too large") {
		t.Errorf("exit code %d; it says %s", code, said)
	}
}
