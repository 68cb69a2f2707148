package memstore_test

import (
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/store/storetest"
)

var harness = storetest.Harness{Open: func(testing.TB) lease.Store { return memstore.New() }}

func TestContract(t *testing.T) { storetest.Run(t, harness) }

func BenchmarkStore(b *testing.B) { storetest.Bench(b, harness) }
