package filter_test

import (
	"fmt"

	"github.com/weir-go/weir/filter"
)

// A filter that never changes is compiled when the program starts.
func ExampleMustCompile() {
	large := filter.MustCompile(`{"data": {"cents": [{"numeric": [">", 1000]}]}}`)
	_ = large
	fmt.Println("compiled")
	// Output: compiled
}
