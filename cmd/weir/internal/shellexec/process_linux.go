package shellexec

import "syscall"

// endWithThread makes the system kill a command when the thread that started it ends. The system
// then kills the command even if this process itself is killed. This does not affect processes that
// the command started.
func endWithThread(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
