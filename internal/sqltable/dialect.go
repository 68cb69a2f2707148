package sqltable

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Numbered returns a statement with its parameters as Postgres wants them: $1, $2 instead of ?.
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

// SQLState returns the code that the server gave an error, "" without one. The errors of pgx and
// lib/pq have it.
func SQLState(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

var mysqlErrorForm = regexp.MustCompile(`\bError (\d{4})\b`)

// MySQLCode returns the code of an error of MySQL or MariaDB, "" without one. The driver's error
// type cannot be named without the driver; its text begins with the code.
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
// have different error types, but all of them contain its English text.
func Mentions(err error, texts ...string) bool {
	return err != nil && slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(err.Error(), text) })
}
