package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/weir-go/weir/deadletter"
)

// mostLetterID is the maximum length of a letter's ID in bytes.
const mostLetterID = 4096

// lettersOf returns the IDs of the dead letters in a form.
func lettersOf(form url.Values) ([]string, error) {
	ids := form["letter"]
	switch {
	case len(ids) == 0:
		return nil, refuse(http.StatusBadRequest, "The form names no dead letter.")
	case len(ids) > mostLetters:
		return nil, refuse(http.StatusBadRequest, "The form names %d dead letters: at most %d can be handled again at a time.", len(ids), mostLetters)
	}
	for _, id := range ids {
		if id == "" || len(id) > mostLetterID {
			return nil, refuse(http.StatusBadRequest, "The form has an ID of %d bytes, which is too long.", len(id))
		}
	}
	return ids, nil
}

// retry handles the selected dead letters again, one after the other, within the time limit of a
// write. text describes what was done, even if the rest failed.
func (h *handler) retry(ctx context.Context, a Action) (text string, notes []string, err error) {
	if h.opts.Letters == nil || h.opts.RetryLetter == nil {
		return "", nil, refuse(http.StatusForbidden, "This page cannot handle dead letters again: set --retry-exec, or Options.RetryLetter.")
	}
	// Two concurrent retries could handle a dead letter twice, because neither knows which dead
	// letters the other has handled.
	if !h.retrying.TryLock() {
		return "", nil, refuse(http.StatusConflict, "Another user is retrying dead letters now. Try again when that has ended.")
	}
	defer h.retrying.Unlock()
	items, _, err := h.letters(ctx, a.App, deadletter.Selection{IDs: a.Letters}, len(a.Letters))
	if err != nil {
		return "", nil, refuse(http.StatusBadGateway, "%v, so nothing was changed.", err)
	}
	if len(items) == 0 {
		return "", nil, refuse(http.StatusConflict, "Another process has handled these dead letters since.")
	}
	o, err := deadletter.Retry(ctx, h.opts.Letters, items, h.retryOne)
	text = retried(o, len(a.Letters), len(items))
	switch {
	case err == nil:
		return text, nil, nil
	case ctx.Err() != nil:
		return text, []string{fmt.Sprintf("The time of %v is over: retry the rest.", writeBound), err.Error()}, nil
	case o.Done+o.Failed+o.Taken < len(items): // the retry stopped early
		return text, nil, refuse(http.StatusBadGateway, "%s The destination of the dead letters gave an invalid answer: %v", text, err)
	case o.Done == 0:
		return "", nil, refuse(http.StatusBadGateway, "%s %v", text, err)
	}
	return text, []string{err.Error()}, nil // the first error; the dead letters that failed stay
}

// retryOne handles one dead letter again. It turns a panic into an error, so the dead letter stays.
func (h *handler) retryOne(ctx context.Context, i deadletter.Item) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("Options.RetryLetter panicked: %v", p)
		}
	}()
	return h.opts.RetryLetter(ctx, i)
}

// retried describes the result of a retry in words. asked is the number of selected dead letters,
// and there the number of them that still existed.
func retried(o deadletter.Outcome, asked, there int) string {
	parts := []string{fmt.Sprintf("%d of %d %s %s handled again", o.Done, asked, plural(asked, "dead letter", "dead letters"), plural(o.Done, "was", "were"))}
	if o.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed and %s", o.Failed, plural(o.Failed, "stays", "stay")))
	}
	if taken := o.Taken + asked - there; taken > 0 {
		parts = append(parts, fmt.Sprintf("another process has handled %d since", taken))
	}
	if rest := there - o.Done - o.Failed - o.Taken; rest > 0 {
		parts = append(parts, fmt.Sprintf("%d %s left, and one of these may have been begun", rest, plural(rest, "is", "are")))
	}
	return strings.Join(parts, "; ") + "."
}
