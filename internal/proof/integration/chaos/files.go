package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/chaos/verdict"
)

// The files of a run, except for the logs. They are the complete input of the verdict.
const (
	putsFile      = "puts"
	faultsFile    = "faults"
	settingsFile  = "settings"
	journalSuffix = ".journal"
)

func appendFault(w io.Writer, f *verdict.Fault) error {
	line, err := json.Marshal(f)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// readHistory reads the files of a run.
func readHistory(dir string, allowance time.Duration) (h verdict.History, err error) {
	h.Allowance = allowance
	text, err := os.ReadFile(filepath.Join(dir, putsFile))
	if err != nil {
		return h, err
	}
	if h.Puts, err = verdict.ParsePuts(text); err != nil {
		return h, err
	}
	if h.Journals, err = readJournals(dir); err != nil {
		return h, err
	}
	f, err := os.Open(filepath.Join(dir, faultsFile))
	if err != nil {
		return h, err
	}
	defer f.Close()
	for lines := json.NewDecoder(f); ; {
		var fault verdict.Fault
		if err := lines.Decode(&fault); errors.Is(err, io.EOF) {
			return h, nil
		} else if err != nil {
			return h, err
		}
		h.Faults = append(h.Faults, fault)
	}
}

func readJournals(dir string) (journals []verdict.Journal, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+journalSuffix))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		j := verdict.Journal{Life: strings.TrimSuffix(filepath.Base(path), journalSuffix)}
		if _, err := j.Add(text); err != nil {
			return nil, errors.Join(errors.New(path), err)
		}
		journals = append(journals, j)
	}
	return journals, nil
}

// countDistinct returns the number of records that were handled or dead-lettered.
func countDistinct(dir string) (int64, error) {
	journals, err := readJournals(dir)
	if err != nil {
		return 0, err
	}
	seen := map[verdict.Put]bool{}
	for _, j := range journals {
		for _, h := range j.Handlings {
			seen[h.Put] = true
		}
	}
	letters, err := readLetters(dir)
	for _, l := range letters {
		seen[l.Put] = true
	}
	return int64(len(seen)), err
}
