// Package bench measures whole consumers and readers by the public API, next to the AWS SDK. It has
// only benchmarks and a test of the number of allocations.
package bench
