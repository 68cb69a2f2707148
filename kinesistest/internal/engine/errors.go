package engine

import "fmt"

// Error is an error answer of the service.
type Error struct {
	Code    string // for example "ResourceNotFoundException"
	Message string
	Status  int // HTTP status
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

func fail(code, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Status: 400}
}

func invalid(format string, args ...any) error {
	return fail("InvalidArgumentException", format, args...)
}

func notFound(format string, args ...any) error {
	return fail("ResourceNotFoundException", format, args...)
}

func inUse(format string, args ...any) error {
	return fail("ResourceInUseException", format, args...)
}

func limitExceeded(format string, args ...any) error {
	return fail("LimitExceededException", format, args...)
}

func validation(format string, args ...any) error {
	return fail("ValidationException", format, args...)
}

func throttled(format string, args ...any) error {
	return fail("ProvisionedThroughputExceededException", format, args...)
}

// dryRun returns the service's answer to a dry run that found no error.
func dryRun() error {
	return fail("DryRunOperationException", "Request would have succeeded, but DryRun is set to true.")
}
