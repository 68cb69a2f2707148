package redisstore_test

import (
	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/store/redisstore"
)

// The server must keep every write that it has confirmed.
func ExampleNew() {
	open := func() (*redisstore.Store, error) {
		client := redis.NewClient(&redis.Options{Addr: "redis.example.com:6379"})
		return redisstore.New(client, redisstore.Options{})
	}
	_ = open
}
