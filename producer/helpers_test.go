package producer

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/kinesistest"
)

// lines collects log lines.
type lines struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *lines) count(of string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), of)
}

// brings reports whether a call of PutRecords has a record whose payload contains a text.
func brings(t *testing.T, c *kinesistest.Call, text string) bool {
	if len(c.Body) > 0 && c.Body[0] != '{' { // CBOR has data as they are
		return bytes.Contains(c.Body, []byte(text))
	}
	var in struct{ Records []struct{ Data []byte } }
	if err := json.Unmarshal(c.Body, &in); err != nil {
		t.Error(err)
	}
	for _, r := range in.Records {
		if bytes.Contains(r.Data, []byte(text)) {
			return true
		}
	}
	return false
}

// onDemandStream makes the on-demand stream "s".
func onDemandStream(t *testing.T, server *kinesistest.Server) {
	t.Helper()
	_, err := server.Client().CreateStream(t.Context(), &kinesis.CreateStreamInput{
		StreamName: aws.String("s"), StreamModeDetails: &types.StreamModeDetails{StreamMode: types.StreamModeOnDemand},
	})
	if err != nil {
		t.Fatal(err)
	}
	server.AwaitShards("s", 4)
}

// becomeAuto makes the stream distribute records by itself.
func becomeAuto(t *testing.T, server *kinesistest.Server) {
	t.Helper()
	_, err := server.Client().UpdateStreamRecordDistributionStrategy(t.Context(), &kinesis.UpdateStreamRecordDistributionStrategyInput{
		StreamARN: aws.String(server.StreamARN("s")), RecordDistributionStrategy: types.RecordDistributionStrategyAuto,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func autoStream(t *testing.T, server *kinesistest.Server) {
	t.Helper()
	onDemandStream(t, server)
	becomeAuto(t, server)
}
