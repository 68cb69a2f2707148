package servers_test

import (
	"net"
	"net/url"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/proof/integration/servers"
)

func TestEachServerAnswersOnLoopback(t *testing.T) {
	tables := func(t *testing.T, s *servers.Server) error {
		_, err := s.DynamoDB().ListTables(t.Context(), &dynamodb.ListTablesInput{})
		return err
	}
	streams := func(t *testing.T, s *servers.Server) error {
		_, err := s.Kinesis().ListStreams(t.Context(), &kinesis.ListStreamsInput{})
		return err
	}
	for _, c := range []struct {
		name  string
		start func(testing.TB) *servers.Server
		ask   func(*testing.T, *servers.Server) error
	}{
		{"DynamoDB Local", servers.DynamoDBLocal, tables},
		{"dynalite", servers.Dynalite, tables},
		{"kinesalite", servers.Kinesalite, streams},
		{"kinesis-local", servers.KinesisLocal, streams},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.start(t)
			u, err := url.Parse(s.URL)
			if err != nil {
				t.Fatal(err)
			}
			if ip := net.ParseIP(u.Hostname()); !ip.IsLoopback() {
				t.Errorf("it listens on %s", u.Host)
			}
			if err := c.ask(t, s); err != nil {
				t.Error(err)
			}
		})
	}
}
