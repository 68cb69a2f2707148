// Package operate executes the tasks of operators: it pauses applications, drains workers and moves
// checkpoints. The weir command and the dashboard use it, so that both behave the same. Package
// change decides what to change.
package operate
