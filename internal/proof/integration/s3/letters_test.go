package s3_test

import (
	"testing"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/deadletter/boxtest"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/sink/s3sink/s3letters"
)

// The contract runs on a real server, which must support conditional writes, because marks use
// them.
func TestContractOfBoxes(t *testing.T) {
	addr := servers.S3(t).Addr
	boxtest.Run(t, func(t *testing.T, name string) deadletter.Box {
		t.Helper()
		b, err := s3letters.New(servers.S3Client(addr), servers.Bucket, name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	})
}
