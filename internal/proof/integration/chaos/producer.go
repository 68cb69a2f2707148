package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/chaos/verdict"
	"github.com/weir-go/weir/kinesistest"
)

// keys is the number of partition keys.
const keys = 200

// producer puts numbered records with many keys. It writes down the records that the stream
// accepted.
type producer struct {
	server *kinesistest.Server
	path   string
	rate   int // records per second
	put    atomic.Int64
	// late is the largest delay of this process in nanoseconds. It measures the load of the
	// machine.
	late atomic.Int64
}

func (p *producer) run(ctx context.Context) (err error) {
	const tick = 20 * time.Millisecond
	list, err := os.Create(p.path)
	if err != nil {
		return err
	}
	defer func() {
		if closing := list.Close(); err == nil {
			err = closing
		}
	}()
	out := bufio.NewWriter(list)
	every := time.NewTicker(tick)
	defer every.Stop()
	began := time.Now()
	last := began
	var line []byte
	numbers := make([]int, keys)
	for n := 0; ; {
		for due := int(time.Since(began).Seconds() * float64(p.rate)); n < due; n++ {
			numbers[n%keys]++
			r := verdict.Put{Key: fmt.Sprintf("key-%03d", n%keys), Number: numbers[n%keys], At: now()}
			line = verdict.AppendPut(line[:0], r)
			if _, err := out.Write(line); err != nil {
				return err
			}
			p.server.Put(stream, r.Key, recordData(r))
			p.put.Add(1)
		}
		if err := out.Flush(); err != nil {
			return err
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return nil
		}
		at := time.Now()
		p.late.Store(max(p.late.Load(), int64(at.Sub(last)-tick)))
		last = at
	}
}
