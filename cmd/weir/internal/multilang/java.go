package multilang

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// daemons are the main classes of the MultiLangDaemon.
var daemons = map[string]generation{
	"software.amazon.kinesis.multilang.MultiLangDaemon":                kcl2,
	"com.amazonaws.services.kinesis.multilang.MultiLangDaemon":         kcl1,
	"com.amazonaws.services.kinesis.multilang.MultiLangDaemonLauncher": kcl1,
}

// takesValue lists the options of java whose value is the next argument.
var takesValue = []string{"-cp", "-classpath", "--class-path", "--add-opens", "--add-exports", "--add-modules", "--module-path"}

// FromJava translates the arguments with which amazon_kclpy_helper and kcl-bootstrap start java, so
// that weir can take the place of java. It returns false if the arguments do not name the
// MultiLangDaemon. The store is in WEIR_STORE.
func FromJava(args []string, exists func(path string) bool) ([]string, bool) {
	i := slices.IndexFunc(args, func(a string) bool { return daemons[a] != "" })
	if i < 0 {
		return nil, false
	}
	var path []string // directories in which the daemon would look for the file
	for j := 0; j < i; j++ {
		if !slices.Contains(takesValue, args[j]) {
			if !strings.HasPrefix(args[j], "-") {
				return nil, false // another class, or not java's arguments
			}
			continue
		}
		if j++; j < i && slices.Contains(takesValue[:3], args[j-1]) {
			path = filepath.SplitList(args[j])
		}
	}
	file := ""
	for rest := args[i+1:]; len(rest) > 0; rest = rest[1:] {
		name, value, assigned := strings.Cut(rest[0], "=")
		switch name {
		case "-p", "--properties-file", "-l", "--log-configuration":
			if !assigned && len(rest) > 1 {
				rest = rest[1:]
				value = rest[0]
			}
			if name == "-p" || name == "--properties-file" {
				file = value
			}
		default:
			if file == "" {
				file = rest[0]
			}
		}
	}
	if file == "" {
		return nil, false
	}
	for _, dir := range path {
		if exists(file) {
			break
		}
		if in := filepath.Join(dir, file); exists(in) {
			file = in
		}
	}
	return []string{"multilang", "--properties", file, "--protocol", string(daemons[args[i]])}, true
}

// Exists reports whether a file exists.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
