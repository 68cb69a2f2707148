// Package bench measures whole consumers and readers through the public API, and compares them with
// the AWS SDK. It contains only benchmarks, and a test of the number of allocations.
package bench
