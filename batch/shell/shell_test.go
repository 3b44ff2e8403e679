package shell

import (
	"testing"

	"weir/batch/batchtest"
)

func TestMain(m *testing.M) { batchtest.Main(m, Local(), SSH()) }

func TestLocal(t *testing.T) {
	batchtest.Run(t, batchtest.Place{System: Local(), Dies: true})
}
