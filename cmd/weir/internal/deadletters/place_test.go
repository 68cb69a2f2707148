package deadletters

import "testing"

func TestPlacesOfLetters(t *testing.T) {
	for s, want := range map[string]string{
		"file:a:b.ndjson":                     "file:a:b.ndjson",
		"s3://bucket":                         "s3://bucket",
		"s3://bucket/a/b/":                    "s3://bucket/a/b",
		"sqlite:letters.db":                   "sqlite:letters.db",
		"postgres://u:secret@h/d":             "postgres://u:xxxxx@h/d",
		"mysql://u:secret@h/d?weir_prefix=x_": "mysql://u:xxxxx@h/d?weir_prefix=x_",
		"mariadb://h/d":                       "mariadb://h/d",
	} {
		if p, err := Parse(s); err != nil || p.String() != want {
			t.Errorf("%s: %s, %v", s, p, err)
		}
	}
}
