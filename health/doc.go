// Package health says how the shards of an application stand, and how the whole application does,
// from a few observations of each shard. It is the one place that judges: the command, the metrics
// and the page all say what it says.
//
// It is pure. Whoever observes fills an [Observation] per shard and moment and keeps some of them,
// for which [Window] is there; [Evaluate] judges a window, [Sum] an application. What is behind is
// judged by whether its lag falls, not by how large it is: a lag of a day that shrinks is fine, and
// one of a minute that never shrinks is not. The few bounds in time are [Options].
//
// Three lags are told apart. The read lag is how far behind the last read was, the handled lag
// starts at the oldest record that no handler is done with, and the checkpoint lag at the oldest
// record that would be handled again if the worker died now. While nobody reads a shard its lag
// goes on growing.
package health
