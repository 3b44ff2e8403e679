package hosts

import (
	"testing"
)

func TestScratchDevice(t *testing.T) {
	for _, c := range []struct {
		device, disk string
		want         bool
	}{
		{"vda", "vda", true}, {"/dev/vda1", "vda", true}, {"nvme0n1p2", "nvme0n1", true}, {"nvme0n1", "nvme0n1", true},
		{"mmcblk0p12", "mmcblk0", true},
		{"vdab", "vda", false}, {"vdb1", "vda", false}, {"nvme0n12", "nvme0n1", false}, {"tmpfs", "vda", false}, {"", "vda", false},
		{"vda", "", false}, {"nvme0n1p", "nvme0n1", false},
	} {
		if got := liesOn(c.device, c.disk); got != c.want {
			t.Errorf("%s on %s: %v", c.device, c.disk, got)
		}
	}
}
