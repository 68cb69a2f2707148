package s3sink_test

import (
	"context"

	"github.com/weir-go/weir/deadletter"
)

// lettersFunc is a destination that counts.
func lettersFunc(count func()) deadletter.Destination {
	return deadletter.Func(func(context.Context, []deadletter.Letter) error {
		count()
		return nil
	})
}
