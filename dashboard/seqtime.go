package dashboard

import (
	"time"

	"github.com/weir-go/weir/internal/seqtime"
)

// timesOf returns the times in a sequence number; see [seqtime.Of].
func timesOf(sequence string) (opened, arrived time.Time, ok bool) { return seqtime.Of(sequence) }
