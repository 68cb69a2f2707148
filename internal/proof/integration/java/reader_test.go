package java_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/dynamostore"
)

// weirReader is the environment variable that makes this program a reader with weir: the endpoints
// of Kinesis and DynamoDB, and the name of the worker.
const weirReader = "WEIR_TEST_READER"

// readWithWeir reads the stream orders at weir's defaults, and prints the same lines as KclReader.
func readWithWeir(told string) int {
	if err := readTo(os.Stdout, strings.Fields(told)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func readTo(out io.Writer, args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	client := kinesis.NewFromConfig(cfg, func(o *kinesis.Options) { o.BaseEndpoint = &args[0] })
	// Only Kinesis has the certificate in AWS_CA_BUNDLE, and DynamoDB Local has none.
	store := dynamostore.New(
		dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.BaseEndpoint = &args[1] }),
		dynamostore.Options{Table: "weir"})
	c, err := weir.New(client, store, weir.Options{Streams: []string{"orders"}, App: "billing", Worker: args[2]})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	return c.Run(ctx, weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error {
		var lines bytes.Buffer
		for _, r := range b.Records {
			fmt.Fprintf(&lines, "R %s %s 0 %s %s\n", r.Shard(), r.SequenceNumber, r.PartitionKey, r.Data)
		}
		mu.Lock()
		defer mu.Unlock()
		_, err := out.Write(lines.Bytes())
		return err
	}))
}

// weirCommand returns the command of a reader with weir.
func weirCommand(t *testing.T, srv *kinesistest.Server, dynamo, name string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), weirReader+"="+strings.Join([]string{srv.URL(), dynamo, name}, " "),
		"AWS_CA_BUNDLE="+servers.CAFile(t, srv.CACertPEM()), "AWS_REGION="+servers.Region,
		"AWS_ACCESS_KEY_ID="+servers.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+servers.SecretAccessKey)
	return cmd
}

// units is what requests to DynamoDB cost.
type units struct {
	requests      int
	writes, reads float64
	kinds         map[string]int
}

// tally forwards requests to DynamoDB and adds up the capacity that they consume. It works for a
// client in any language.
type tally struct {
	url string
	mu  sync.Mutex
	sum units
}

func newTally(t *testing.T, dynamo string) *tally {
	t.Helper()
	to, err := url.Parse(dynamo)
	if err != nil {
		t.Fatal(err)
	}
	c := &tally{}
	forward := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: c.count,
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ask(r)
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	c.url = srv.URL
	return c
}

// action returns the name of the action of a request.
func action(r *http.Request) string {
	_, name, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return name
}

// ask adds the question for the consumed capacity to a request that reads or writes items.
func ask(r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var fields map[string]json.RawMessage
	if err == nil && (strings.Contains(action(r), "Item") || action(r) == "Query" || action(r) == "Scan") &&
		json.Unmarshal(body, &fields) == nil {
		fields["ReturnConsumedCapacity"] = json.RawMessage(`"TOTAL"`)
		if with, err := json.Marshal(fields); err == nil {
			body = with
		}
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	r.Header.Del("Accept-Encoding")
}

func (c *tally) count(answer *http.Response) error {
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	type consumed struct{ CapacityUnits float64 }
	var one struct{ ConsumedCapacity consumed }
	var many struct{ ConsumedCapacity []consumed }
	sum := 0.0
	if json.Unmarshal(body, &one) == nil {
		sum = one.ConsumedCapacity.CapacityUnits
	} else if json.Unmarshal(body, &many) == nil {
		for _, of := range many.ConsumedCapacity {
			sum += of.CapacityUnits
		}
	}
	name := action(answer.Request)
	if bytes.Contains(body, []byte("ConditionalCheckFailed")) {
		sum++ // costs as much as a successful write; items here are below 1 KB
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sum.requests++
	if c.sum.kinds == nil {
		c.sum.kinds = map[string]int{}
	}
	c.sum.kinds[name]++
	switch name {
	case "GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems":
		c.sum.reads += sum
	default:
		c.sum.writes += sum
	}
	return nil
}

// take returns the sum and begins a new one.
func (c *tally) take() units {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := c.sum
	c.sum = units{}
	return sum
}
