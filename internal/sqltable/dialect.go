package sqltable

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Numbered returns a statement with parameters in the form of Postgres: $1, $2 in place of ?.
func Numbered(query string) string {
	var b strings.Builder
	for i := 1; ; i++ {
		before, after, more := strings.Cut(query, "?")
		b.WriteString(before)
		if !more {
			return b.String()
		}
		b.WriteString("$" + strconv.Itoa(i))
		query = after
	}
}

// SQLState returns the server's code of an error, or "" if it has none. Errors of pgx and lib/pq
// have a code.
func SQLState(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

var mysqlErrorForm = regexp.MustCompile(`\bError (\d{4})\b`)

// MySQLCode returns the code of an error of MySQL or MariaDB, or "" if it has none. The driver's
// error type cannot be named without the driver, but its text contains the code.
func MySQLCode(err error) string {
	if err == nil {
		return ""
	}
	if m := mysqlErrorForm.FindStringSubmatch(err.Error()); m != nil {
		return m[1]
	}
	return ""
}

// Mentions reports whether the text of an error contains one of the texts. The drivers of SQLite
// have different error types, but all errors contain SQLite's English text.
func Mentions(err error, texts ...string) bool {
	return err != nil && slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(err.Error(), text) })
}
