package fanout

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

// A listing that never ends causes an error, whether the server repeats a token or creates new
// ones.
func TestAListingOfConsumersThatNeverEnds(t *testing.T) {
	for name, same := range map[string]bool{"one token": true, "new tokens": false} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				token := "t"
				if asked++; !same {
					token = fmt.Sprintf("t%d", asked)
				}
				w.Header().Set("Content-Type", "application/x-amz-json-1.1")
				fmt.Fprintf(w, `{"Consumers":[],"NextToken":%q}`, token)
			}))
			defer s.Close()
			c := clitest.Start(t, "", "fanout", "list", "--endpoint="+s.URL, "--stream=arn:aws:kinesis:us-east-1:000000000000:stream/s")
			if code := c.Wait(t); code != cli.ExitFailed || !strings.Contains(c.Err.String(), "does not end") || asked > mostPages {
				t.Errorf("exit code %d after %d pages, %s", code, asked, c.Err)
			}
		})
	}
}
