package servers_test

import (
	"os"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/servers"
)

func TestAProgramIsToldWhatFailedAndLeavesNothing(t *testing.T) {
	var dir string
	reached, ended := false, []int{}
	err := servers.Run(t.Context(), func(p testing.TB) {
		dir = p.TempDir()
		p.Cleanup(func() { ended = append(ended, 1) })
		p.Cleanup(func() { ended = append(ended, 2) })
		p.Errorf("one %d", 1)
		if !p.Failed() || p.Context().Err() != nil {
			t.Error("not failed, or over")
		}
		p.Fatal("two")
		reached = true
	})
	if err == nil || !strings.Contains(err.Error(), "one 1") || !strings.Contains(err.Error(), "two") || reached {
		t.Errorf("%v; went on: %t", err, reached)
	}
	if len(ended) != 2 || ended[0] != 2 {
		t.Errorf("cleaned up in the order %v", ended)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s: %v", dir, err)
	}
	if err := servers.Run(t.Context(), func(testing.TB) {}); err != nil {
		t.Error(err)
	}
}

func TestDynamoDBLocalKeepsTablesInADirectory(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		d := servers.DynamoDBLocalOn(t, dir)
		s, closer, err := servers.OpenStore(servers.DynamoDBStore, d.URL)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := servers.PrepareStore(t.Context(), servers.DynamoDBStore, d.URL); err != nil {
				t.Fatal(err)
			}
		}
		took, err := s.Lead(t.Context(), "app", "a", uint64(i))
		if err != nil || !took {
			t.Errorf("after %d crashes: %t, %v", i, took, err)
		}
		closer.Close()
		d.Kill()
	}
}
