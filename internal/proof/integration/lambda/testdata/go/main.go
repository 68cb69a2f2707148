// Command function is a Lambda function for flights. It fails as a whole at the first flight that
// fails. It writes the flights that it has handled to a file.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

var handled *os.File

func main() {
	var err error
	handled, err = os.OpenFile(os.Getenv("FLIGHTS_HANDLED"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(handler)
}

func handler(ctx context.Context, event events.KinesisEvent) error {
	about, _ := lambdacontext.FromContext(ctx)
	deadline, _ := ctx.Deadline()
	log.Printf("request %s of %s, %d ms are left", about.AwsRequestID, about.InvokedFunctionArn, time.Until(deadline).Milliseconds())
	for _, r := range event.Records {
		if err := handle(r.Kinesis); err != nil {
			return err
		}
	}
	return nil
}

func handle(r events.KinesisRecord) error {
	var flight struct {
		Flight int
		Fails  string
	}
	if err := json.Unmarshal(r.Data, &flight); err != nil {
		return err
	}
	switch flight.Fails {
	case "always":
		return fmt.Errorf("flight %d fails always", flight.Flight)
	case "hangs always":
		hang(flight.Flight)
	case "once", "hangs once", "exits once", "is killed once", "panics once":
		switch first, err := firstTime(flight.Flight); {
		case err != nil:
			return err
		case first:
			return fail(flight.Flight, flight.Fails)
		}
	}
	_, err := fmt.Fprintf(handled, "%d %s %s\n", flight.Flight, r.PartitionKey, r.SequenceNumber)
	return err
}

func fail(flight int, how string) error {
	switch how {
	case "hangs once":
		hang(flight)
	case "exits once":
		os.Exit(3)
	case "is killed once":
		self, _ := os.FindProcess(os.Getpid()) // never fails here
		_ = self.Kill()
		select {}
	case "panics once":
		panic(fmt.Sprintf("flight %d panics once", flight))
	}
	return fmt.Errorf("flight %d fails once", flight)
}

// hang starts a program and waits for it, longer than any caller waits for a function.
func hang(flight int) {
	cmd := exec.Command("sleep", "3600")
	if err := cmd.Start(); err != nil {
		log.Fatal(err)
	}
	log.Printf("flight %d waits for process %d", flight, cmd.Process.Pid)
	log.Fatal(cmd.Wait())
}

// firstTime reports whether no process has failed at this flight before.
func firstTime(flight int) (bool, error) {
	mark, err := os.OpenFile(filepath.Join(os.Getenv("FLIGHTS_FAILED"), strconv.Itoa(flight)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, mark.Close()
}
