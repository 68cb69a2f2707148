// Package operate does to an application what operators do with it: pauses it, drains a worker,
// moves its checkpoints. The command and the page both do it through this package, so that what one
// promises the other keeps. What is to be changed is decided in package change.
package operate
