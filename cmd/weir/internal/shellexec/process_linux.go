package shellexec

import "syscall"

// endWithThread has the system kill a command when the thread that started it ends, and so when
// this process is killed and can do nothing. It reaches the command alone, not what that started.
func endWithThread(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
