package transfer

import (
	"encoding/json"
	"testing"
)

// Databases and agents of older versions have samples in which the keys of the endpoint began with
// door.
func TestSampleOfAnOlderVersion(t *testing.T) {
	for _, text := range []string{
		`{"cores":2,"door_received_bytes":7,"door_sent_bytes":9}`,
		`{"cores":2,"endpoint_received_bytes":7,"endpoint_sent_bytes":9}`,
	} {
		s := Sample{Running: 3}
		if err := json.Unmarshal([]byte(text), &s); err != nil || s != (Sample{Cores: 2, EndpointIn: 7, EndpointOut: 9}) {
			t.Errorf("%s was read as %+v, %v", text, s, err)
		}
	}
}
