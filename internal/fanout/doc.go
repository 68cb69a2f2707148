// Package fanout reads shards through subscriptions (enhanced fan-out). It finds or registers the
// consumer, renews subscriptions, and reads ahead of the handler within a memory budget. It polls
// while there are no subscriptions.
package fanout
