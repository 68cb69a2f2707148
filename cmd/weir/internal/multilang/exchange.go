package multilang

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weir-go/weir"
)

// batchGrace is the time that a program has to finish its batch when the lease is lost, and
// endGrace the time to handle the message about that.
const batchGrace, endGrace = 3 * time.Second, time.Second

var (
	errTimeout = errors.New("it sent no message within timeoutInSeconds")
	errAnswer  = errors.New("it answered another action")
	errDeaf    = errors.New("it closed its input or output")
	errLease   = errors.New("the shard may belong to another worker now, and it did not finish its work")
)

// session is one process of the program for one term of a shard. Its functions run in the goroutine
// of Pull.
type session struct {
	*process
	progress *progress
	puller   puller
	protocol generation
	empty    bool // the program also gets batches without records
	term     context.Context
	line     []byte // the buffer for batches
}

// puller is the part of a [weir.Puller] that a session needs.
type puller interface {
	Checkpoint(ctx context.Context, before weir.Position) error
}

// pull handles a shard for one term. An error makes weir pause and call it again. The process has
// ended when it returns.
func (d *daemon) pull(ctx context.Context, p *weir.Puller) (err error) {
	log := d.log.With("shard", p.Shard)
	c, err := d.program.start(p.Shard)
	if err != nil {
		return d.failed(log, fmt.Errorf("the program cannot be started: %w", rootOf(err)))
	}
	log.Info("a process of the program has started", "pid", c.cmd.Process.Pid, "from", p.From.String())
	s := &session{process: c, progress: begin(p.From), puller: p, protocol: d.protocol, empty: d.empty, term: ctx}
	err = s.run(p)
	exit := c.end(ctx)
	switch {
	case err == nil && exit == nil:
		log.Info("the process of the program has ended")
		return nil
	case err == nil:
		log.Warn("the process of the program has ended with an error, after its work", "err", exit)
		return nil
	case errors.Is(err, errProgram):
		if exit != nil {
			err = fmt.Errorf("%w (%w)", err, exit)
		}
		return d.failed(log, err)
	}
	if exit != nil {
		log.Warn("the process of the program has ended with an error", "err", exit)
	}
	return err // the reason why the term has ended
}

// errProgram is wrapped by errors for which the program is responsible.
var errProgram = errors.New("the program failed")

// failed reports a failure of the program. It returns the error for weir, which calls pull again
// after a pause, or ends with --on-failure exit.
func (d *daemon) failed(log *slog.Logger, err error) error {
	if d.onFailure == failureExit {
		return weir.Stop(err)
	}
	log.Error("the program is started again at the last checkpoint, after a pause", "err", err)
	return err
}

// run speaks with the program until the term or the shard ends. It returns nil at the end of the
// shard, the reason if the term ends, and an error that wraps errProgram otherwise.
func (s *session) run(p *weir.Puller) error {
	if err := s.do(initialize, encodeInitialize(s.shard, s.progress.last)); err != nil {
		return err
	}
	for b, err := range p.Batches() {
		if err != nil {
			return s.leave(err)
		}
		if b.Idle && s.hasExited() {
			return fmt.Errorf("%w: its process ended while it had nothing to do", errProgram)
		}
		if len(b.Records) > 0 || b.Idle && s.empty {
			s.line = appendRecords(s.line[:0], b, s.progress.deliver(b.Records))
			if err := s.do(processRecords, s.line); err != nil {
				return err
			}
			if s.term.Err() != nil {
				return s.leave(context.Cause(s.term))
			}
		}
		if b.End {
			return s.finish()
		}
	}
	return nil
}

// finish sends the message about the end of the shard. The program has to confirm it with a
// checkpoint.
func (s *session) finish() error {
	s.progress.ending = true
	a, why := s.protocol.ending(true)
	if err := s.do(a, encodeEvent(a, why)); err != nil {
		return err
	}
	if !s.progress.ended {
		return fmt.Errorf("%w: it did not checkpoint the end of the shard", errProgram)
	}
	return nil
}

// leave sends the messages about the end of the term. While the lease is still held, the program
// may checkpoint first.
func (s *session) leave(why error) error {
	if s.term.Err() == nil {
		if err := s.do(shutdownRequested, encodeEvent(shutdownRequested, "")); err != nil {
			return s.leftEarly(why, err)
		}
	}
	a, reason := s.protocol.ending(false)
	if err := s.do(a, encodeEvent(a, reason)); err != nil {
		return s.leftEarly(why, err)
	}
	return why
}

// leftEarly reports a failure of the program at the end of a term, when it is not started again.
func (s *session) leftEarly(why, err error) error {
	if errors.Is(err, errProgram) {
		s.of.warn(s.shard, "while the shard was given up, "+err.Error())
		s.kill(err)
	}
	return why
}

// do sends an action to the program, answers its requests for checkpoints, and returns when the
// program has finished the action.
func (s *session) do(a action, line []byte) error {
	grace := batchGrace
	if a == leaseLost || a == shutdown && !s.progress.ending {
		grace = endGrace
	}
	// The process is killed when the term has ended and the grace is over.
	over := make(chan struct{})
	defer close(over)
	stop := context.AfterFunc(s.term, func() { // ends with do
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case <-late.C:
			s.kill(errLease)
		case <-over:
		}
	})
	defer stop()
	s.expect(a)
	if err := s.send(line); err != nil {
		return s.gone(a)
	}
	for {
		m, err := s.next()
		switch {
		case err != nil:
			return s.gone(a)
		case !m.status:
			if err := s.send(encodeAnswer(m.checkpoint, s.checkpoint(a, m.checkpoint))); err != nil {
				return s.gone(a)
			}
		case m.response == string(a):
			return nil
		default:
			s.kill(errAnswer)
			return fmt.Errorf("%w: it answered %.40q while %s was outstanding", errProgram, m.response, a)
		}
	}
}

// next returns the next message of the program. If none comes in time, it kills the program.
func (s *session) next() (message, error) {
	var late <-chan time.Time
	if s.of.timeout > 0 {
		timer := time.NewTimer(s.of.timeout)
		defer timer.Stop()
		late = timer.C
	}
	for {
		select {
		case m, some := <-s.messages:
			if !some {
				return message{}, errProgram
			}
			return m, nil
		case <-late:
			s.kill(errTimeout)
			late = nil // the messages end now
		case <-s.exited: // another process may keep the output open
			select {
			case m, some := <-s.messages:
				if some {
					return m, nil
				}
			case <-time.After(drainAfter):
			}
			return message{}, errProgram
		}
	}
}

// hasExited reports whether the process has ended.
func (s *session) hasExited() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// gone returns the error of a process that ended during an action.
func (s *session) gone(a action) error {
	if err := s.term.Err(); err != nil {
		return context.Cause(s.term)
	}
	if !s.ends(s.term, drainAfter) {
		s.kill(errDeaf)
	}
	return fmt.Errorf("%w: its process ended during %s", errProgram, a)
}

// checkpoint carries out a request for a checkpoint. It returns the name of an error, or "".
func (s *session) checkpoint(during action, r request) string {
	allowed := during == processRecords || during == shutdownRequested || during == shardEnded || during == shutdown
	d := s.progress.decide(r, allowed)
	if during == shutdown && !s.progress.ending {
		return errorShutdown
	}
	if d.failure != "" {
		return d.failure
	}
	if s.term.Err() != nil {
		return errorShutdown
	}
	if !d.save.IsZero() {
		if err := s.puller.Checkpoint(s.term, d.save); err != nil {
			return failureName(err)
		}
	}
	s.progress.saved(d)
	return ""
}

// failureName returns the name of the error for a checkpoint that could not be saved.
func failureName(err error) string {
	switch {
	case errors.Is(err, weir.ErrLeaseLost), errors.Is(err, weir.ErrStopping), errors.Is(err, weir.ErrStalled):
		return errorShutdown
	}
	return errorDependency
}
