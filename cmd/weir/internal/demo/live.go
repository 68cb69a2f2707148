package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"
)

// RunLive runs the demo with a live picture in a terminal. It calls interrupt when the user presses
// Ctrl-C, because a full-screen program receives the key instead of a signal.
func RunLive(ctx context.Context, o Options, in io.Reader, out io.Writer, interrupt func()) (Result, error) {
	program := tea.NewProgram(model{interrupt: interrupt, width: LeastWidth, height: LeastHeight},
		tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler(), tea.WithFPS(20))
	o.Show = live{program}

	ctx, cancel := context.WithCancel(ctx)
	var result Result
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer program.Quit()
		result, err = Run(ctx, o)
	}()
	_, drawing := program.Run()
	cancel() // the picture may end before the demo
	<-done
	if drawing != nil {
		err = errors.Join(err, fmt.Errorf("the picture cannot be drawn (try --plain): %w", drawing))
	}
	return result, err
}

// live shows the demo as a picture in a terminal.
type live struct{ program *tea.Program }

func (l live) Picture(p picture)           { l.program.Send(p) }
func (l live) Event(time.Duration, string) {} // the picture shows the steps

// model contains the last picture and the size of the terminal.
type model struct {
	picture       picture
	width, height int
	leaving       bool
	interrupt     func()
}

func (m model) Init() tea.Cmd { return nil }

func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case picture:
		m.picture = msg
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		if key := msg.String(); key == "ctrl+c" || key == "q" {
			m.leaving = true
			m.interrupt()
		}
	}
	return m, nil
}

func (m model) View() tea.View {
	text := screen(m.picture, m.width, m.height)
	if m.leaving {
		text = " stopping the workers …"
	}
	v := tea.NewView(text)
	v.AltScreen = true
	return v
}
