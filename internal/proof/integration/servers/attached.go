package servers

import "os/exec"

// Attach makes the system kill a program if this process is killed, where the system can do that.
// Call it before the program starts.
func Attach(cmd *exec.Cmd) { cmd.SysProcAttr = attributes(nil) }
