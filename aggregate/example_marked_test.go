package aggregate_test

import (
	"fmt"

	"github.com/weir-go/weir/aggregate"
)

// A payload without the mark of an aggregate is one record.
func ExampleMarked() {
	var b aggregate.Builder
	for _, order := range []string{"two teas", "a croissant"} {
		if err := b.Add("customer-7", "", []byte(order)); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(aggregate.Marked(b.Append(nil)), aggregate.Marked([]byte("two teas")))
	// Output: true false
}
