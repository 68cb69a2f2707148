package dead

import (
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/deadletter/sqsletters"
)

// The texts of dead letters must not break lines or control the terminal.
func TestLettersDoNothingToTheTerminal(t *testing.T) {
	item := deadletter.Item{Letter: deadletter.Letter{ID: clitest.Evil, Reason: clitest.Evil, Error: clitest.Evil}}
	clitest.CheckShown(t, "peek", receivedText([]sqsletters.Received{{Item: item}}), 2)
	item.State = clitest.Evil
	clitest.CheckShown(t, "letters", lettersText([]deadletter.Item{item}), 2)
}
