package dashboard

import (
	"os"
	"testing"

	"weir/internal/tier"
)

func TestMain(m *testing.M) { os.Exit(tier.Main(m)) }
