package window_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/window"
)

// The program counts the visits of each minute, by the time in the records. Late visits are
// ignored.
func ExamplePullHandler() {
	handlers, err := window.PullHandler(window.Config[int]{
		Size:  time.Minute,
		Time:  func(r weir.Record) (time.Time, error) { return time.Parse(time.RFC3339, string(r.Data)) },
		Stray: window.Drop,
		Add:   func(visits int, _ weir.Record) (int, error) { return visits + 1, nil },
		Emit: func(_ context.Context, r window.Results[int]) error {
			for _, w := range r.Windows {
				fmt.Println(w.Start, w.State)
			}
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	_ = handlers // a program passes them to its consumer
	fmt.Println("ready")
	// Output: ready
}
