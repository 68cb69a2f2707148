package filter_test

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/filter"
)

func ExampleCompile() {
	f, err := filter.Compile(`{"data": {"kind": ["order"], "amount": [{"numeric": [">=", 100]}]}}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, payload := range []string{`{"kind": "order", "amount": 250}`, `{"kind": "order", "amount": 5}`, `kind=order`} {
		fmt.Println(f.Match([]byte(payload), "customer-7", time.Now()))
	}
	_, err = filter.Compile(`{"data": {"kind": [{"prefxi": "or"}]}}`)
	fmt.Println(err)
	// Output:
	// true true
	// false true
	// false false
	// filter: data.kind[0].prefxi: there is no such operator; there are anything-but, cidr, equals-ignore-case, exists, numeric, prefix, suffix, wildcard
}
