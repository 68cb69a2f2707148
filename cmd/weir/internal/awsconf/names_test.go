package awsconf

import "testing"

func TestIsLoopback(t *testing.T) {
	for s, want := range map[string]bool{
		"http://127.0.0.1:4567": true, "https://localhost": true, "http://[::1]:1": true, "http://x.localhost:1": true, "http://127.1.2.3": true,
		"": false, "http://10.0.0.1:4567": false, "https://kinesis.eu-west-1.amazonaws.com": false, "http://localhost.example.com": false,
		"127.0.0.1:4567": false, "://": false, "http://127.0.0.1.example.com": false,
	} {
		if got := IsLoopback(s); got != want {
			t.Errorf("isLoopback(%q) = %v", s, got)
		}
	}
}
