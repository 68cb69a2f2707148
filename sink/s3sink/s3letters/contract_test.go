package s3letters_test

import (
	"sync"
	"testing"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/deadletter/boxtest"
	"github.com/weir-go/weir/internal/proof/fakes3"
)

func TestContractOfBoxes(t *testing.T) {
	var mu sync.Mutex
	buckets := map[string]*fakes3.Server{}
	boxtest.Run(t, func(t *testing.T, name string) deadletter.Box {
		mu.Lock()
		defer mu.Unlock()
		if buckets[name] == nil {
			buckets[name] = fakes3.New()
		}
		return box(t, buckets[name])
	})
}
