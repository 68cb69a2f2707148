package otelweir

import "testing"

func TestConventionsAreChosen(t *testing.T) {
	t.Parallel()
	for choice, want := range map[string]string{
		"": "1.43.0 messaging.system", "http,database": "1.43.0 messaging.system", "messagings": "1.43.0 messaging.system",
		"messaging": "1.45.0 messaging.system.name", "http, messaging ": "1.45.0 messaging.system.name",
		"messaging/dup": "1.45.0 messaging.system messaging.system.name", "messaging,messaging/dup": "1.45.0 messaging.system messaging.system.name",
	} {
		c := conventionsOf(choice)
		got := c.schema[len("https://opentelemetry.io/schemas/"):]
		for _, of := range c.system {
			got += " " + string(of.Key)
			if of.Value.AsString() != kinesis {
				t.Errorf("%q: %s is %s", choice, of.Key, of.Value.AsString())
			}
		}
		if got != want {
			t.Errorf("%q: %s, want %s", choice, got, want)
		}
	}
}
