// Package fanout reads shards by subscriptions (enhanced fan-out): it finds or registers the
// consumer, subscribes again and again, reads ahead of the handler within a budget of memory, and
// polls while there are no subscriptions.
package fanout
