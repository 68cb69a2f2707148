package deadletter

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Parse parses the JSON of a dead letter. It returns an error if the text is not a dead letter, has
// a form that needs a later version, or has no ID. It ignores unknown members.
func Parse(text []byte) (Letter, error) {
	var l struct {
		Letter
		Batch json.RawMessage `json:"KinesisBatchInfo"` // set in messages of [Lambda]
	}
	err := json.Unmarshal(text, &l)
	switch {
	case err != nil:
	case l.Version == 0 && l.Batch != nil:
		err = errors.New("it is in Lambda's format, which only programs for Lambda's messages can read")
	case l.Version == 0:
		err = errors.New(`it has no "weir_letter"`)
	case l.Version < 0 || l.Version > Version:
		err = fmt.Errorf("it has form %d; this weir reads up to %d", l.Version, Version)
	case l.ID == "":
		err = errors.New("it has no id")
	}
	if err != nil {
		return Letter{}, err
	}
	return l.Letter, nil
}
