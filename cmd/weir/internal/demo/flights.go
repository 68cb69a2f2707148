package demo

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
)

// README.md describes the origin of the flights.
//
//go:embed flights.ndjson.gz
var packed []byte

// flight is one record of the demo with its partition key.
type flight struct {
	origin string
	data   []byte
}

// flights returns the first n flights. The data of each is the line of the file with a number in
// front: {"flight":17,"date":…}. The number identifies the record in the journals.
func flights(n int) ([]flight, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("the flights inside this program are damaged: %w", err)
	}
	all := make([]flight, 0, n)
	lines := bufio.NewScanner(unpacked)
	for len(all) < n && lines.Scan() {
		var fields struct {
			Origin string `json:"origin"`
		}
		if err := json.Unmarshal(lines.Bytes(), &fields); err != nil || fields.Origin == "" {
			return nil, fmt.Errorf("flight %d inside this program is damaged: %.100q", len(all), lines.Text())
		}
		data := fmt.Appendf(nil, `{"flight":%d,`, len(all))
		all = append(all, flight{fields.Origin, append(data, lines.Bytes()[1:]...)})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("the flights inside this program are damaged: %w", err)
	}
	if len(all) < n {
		return nil, fmt.Errorf("there are %d flights, not %d", len(all), n)
	}
	return all, nil
}

// flightIndex returns the number of a flight from the data of its record.
func flightIndex(data []byte) (int, error) {
	var fields struct {
		Flight *int `json:"flight"`
	}
	if err := json.Unmarshal(data, &fields); err != nil || fields.Flight == nil {
		return 0, fmt.Errorf("the record %.100q is not a flight of the demo", data)
	}
	return *fields.Flight, nil
}
