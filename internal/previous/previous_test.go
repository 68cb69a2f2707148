package previous_test

import (
	"testing"

	"github.com/weir-go/weir/internal/previous"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/store/storetest"
)

func TestTheVersionBeforeFindsTheContractKept(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open: func(testing.TB) lease.Store { return previous.Client(memstore.New()) },
	})
}
