package dashboard

import (
	"time"

	"github.com/weir-go/weir/internal/seqtime"
)

// timesOf returns the times that a sequence number contains; see [seqtime.Of].
func timesOf(sequence string) (opened, arrived time.Time, ok bool) { return seqtime.Of(sequence) }
