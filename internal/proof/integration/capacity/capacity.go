// Package capacity measures the cost of a DynamoDB client's requests. The server reports the cost.
package capacity

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

// Cost is a cost in capacity units.
type Cost struct {
	Requests      int
	Kinds         map[string]int // number of requests by action
	Writes, Reads float64
}

// Meter adds up the cost of the requests of clients.
type Meter struct {
	mu  sync.Mutex
	sum Cost
}

// Options makes the requests of a client count.
func (m *Meter) Options(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("capacity", m.handle), middleware.Before)
	})
}

func (m *Meter) handle(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	out middleware.InitializeOutput, metadata middleware.Metadata, err error,
) {
	// The answers of all operations that consume capacity contain this field.
	if field := reflect.ValueOf(in.Parameters).Elem().FieldByName("ReturnConsumedCapacity"); field.IsValid() {
		field.Set(reflect.ValueOf(types.ReturnConsumedCapacityTotal))
	}
	out, metadata, err = next.HandleInitialize(ctx, in)
	kind := strings.TrimSuffix(reflect.TypeOf(in.Parameters).Elem().Name(), "Input")
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sum.Requests++
	if m.sum.Kinds == nil {
		m.sum.Kinds = map[string]int{}
	}
	m.sum.Kinds[kind]++
	if err != nil {
		var refused *types.ConditionalCheckFailedException
		if errors.As(err, &refused) {
			m.sum.Writes++ // costs as much as a successful one; rows here are below 1 KB
		}
		return out, metadata, err
	}
	var units float64
	switch c := reflect.ValueOf(out.Result).Elem().FieldByName("ConsumedCapacity"); {
	case !c.IsValid():
	case c.Kind() == reflect.Slice:
		for _, one := range c.Interface().([]types.ConsumedCapacity) {
			units += aws.ToFloat64(one.CapacityUnits)
		}
	case !c.IsNil():
		units = aws.ToFloat64(c.Interface().(*types.ConsumedCapacity).CapacityUnits)
	}
	switch kind {
	case "GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems":
		m.sum.Reads += units
	default:
		m.sum.Writes += units
	}
	return out, metadata, err
}

// Take returns the sum and resets it.
func (m *Meter) Take() Cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := m.sum
	m.sum = Cost{}
	return sum
}

// Of calls do and returns the cost of its requests.
func (m *Meter) Of(do func()) Cost {
	m.Take()
	do()
	return m.Take()
}
