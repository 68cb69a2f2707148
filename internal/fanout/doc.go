// Package fanout reads shards by subscriptions (enhanced fan-out). It finds or registers the
// consumer, renews subscriptions, reads ahead of the handler within a memory budget, and polls
// while there are no subscriptions.
package fanout
