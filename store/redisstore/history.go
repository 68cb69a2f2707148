package redisstore

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/lease"
)

//go:embed lua/history.lua
var history string

// historyScript does not use the common code of the other scripts, because it does not access
// leases.
var historyScript = redis.NewScript(history)

// chunksAtOnce is the maximum number of chunks that one command reads.
const chunksAtOnce = 200

// historyKeys returns the keys of an application's history.
func (s *Store) historyKeys(app string) []string {
	return []string{s.key(app, "history"), s.key(app, "history-index")}
}

// PutHistory implements [lease.Historian]. The history expires if no chunk is added for twice the
// time that chunks are kept.
func (s *Store) PutHistory(ctx context.Context, app string, c lease.HistoryChunk) error {
	if err := cmp.Or(ctx.Err(), lease.CheckApp(app), c.Check()); err != nil {
		return err
	}
	return s.lend(ctx, func() error {
		if err := s.check(ctx, app); err != nil {
			return err
		}
		return explain(ctx, historyScript.Run(ctx, s.client, s.historyKeys(app),
			fmt.Sprintf("%d/%s", c.Since, c.Session), c.Since, c.Data, c.Expired(), int(2*lease.HistoryKept/time.Second)).Err())
	})
}

// History implements [lease.Historian].
func (s *Store) History(ctx context.Context, app string, since int64) ([]lease.HistoryChunk, error) {
	if err := cmp.Or(ctx.Err(), lease.CheckApp(app)); err != nil {
		return nil, err
	}
	var chunks []lease.HistoryChunk
	err := s.lend(ctx, func() error {
		chunks = nil
		keys := s.historyKeys(app)
		names, err := s.client.ZRangeByScore(ctx, keys[1], &redis.ZRangeBy{Min: strconv.FormatInt(since, 10), Max: "+inf"}).Result()
		for some := range slices.Chunk(names, chunksAtOnce) {
			var values []any
			if values, err = s.client.HMGet(ctx, keys[0], some...).Result(); err != nil {
				break
			}
			for i, value := range values {
				if c, err := decodeChunk(some[i], value); err == nil {
					chunks = append(chunks, c)
				}
			}
		}
		return explain(ctx, err)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(chunks, func(a, b lease.HistoryChunk) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), strings.Compare(a.Session, b.Session))
	})
	return chunks, nil
}

// decodeChunk reads a chunk of the hash. A chunk that has expired since it was listed is absent.
func decodeChunk(name string, value any) (lease.HistoryChunk, error) {
	minute, session, _ := strings.Cut(name, "/")
	since, err := strconv.ParseInt(minute, 10, 64)
	data, ok := value.(string)
	if err != nil || !ok {
		return lease.HistoryChunk{}, errors.New("redisstore: the chunk of history is missing or malformed")
	}
	c := lease.HistoryChunk{Session: session, Since: since, Data: []byte(data)}
	return c, c.Check()
}
