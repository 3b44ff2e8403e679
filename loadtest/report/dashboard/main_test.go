package dashboard

import (
	"os"
	"testing"

	"weir/lab"
)

func TestMain(m *testing.M) { os.Exit(lab.Main(m)) }
