package situations_test

import "testing"

func checkPage(t *testing.T, all []situation) {}
