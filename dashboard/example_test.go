package dashboard_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/store/memstore"
)

// A service serves the dashboard below its own paths. Only the store is needed.
func ExampleHandler() {
	page := dashboard.Handler(memstore.New(), dashboard.Options{Prefix: "/weir"})
	mux := http.NewServeMux()
	mux.Handle("/weir/", page)

	answer := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, "http://localhost/weir/", nil)
	mux.ServeHTTP(answer, request)
	fmt.Println(answer.Code)
	// Output: 200
}
