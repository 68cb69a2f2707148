//go:build !race

package sqlite

const steps = 1000
