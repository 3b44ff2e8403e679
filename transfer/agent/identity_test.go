package agent

import (
	"bytes"
	"path/filepath"
	"testing"

	"weir/internal/require"
	"weir/internal/wire"
)

// The certificate that an older version made in its folder door remains the certificate of the
// endpoint.
func TestCertificateOfAnOlderVersion(t *testing.T) {
	a := &Agent{state: t.TempDir(), o: Options{Endpoint: &EndpointOptions{Listen: ":0"}}}
	id, err := wire.Keep(filepath.Join(a.state, "door"))
	require.NoError(t, err)
	for range 2 {
		pair, err := a.certificate()
		if err != nil || !bytes.Equal(pair.Certificate[0], id.Cert.Certificate[0]) {
			t.Fatalf("another certificate: %v", err)
		}
	}
}
