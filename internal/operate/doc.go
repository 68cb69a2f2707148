// Package operate carries out the tasks of operators: pausing an application, draining a worker,
// moving checkpoints. The command and the status page both use it, so that they behave the same.
// Package change decides what to change.
package operate
