package monitor

import "strings"

// realDisks drops, in place, what is no disk of its own: memory, partitions,
// layers (device mapper, md) that repeat what the disks under them do, and loop
// devices that were never used.
func realDisks(disks []diskCount) []diskCount {
	keep := disks[:0]
	for i := range disks {
		name := disks[i].name
		unused := isLoop(name) && disks[i].ops == 0
		if !unused && !isLayer(name) && !isPartition(disks, name) {
			keep = append(keep, disks[i])
		}
	}
	return keep
}

func isLoop(name string) bool { return strings.HasPrefix(name, "loop") }

func isLayer(name string) bool {
	for _, p := range [...]string{"ram", "zram", "fd", "sr", "dm-"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return strings.HasPrefix(name, "md") && len(name) > 2 && (isDigit(name[2]) || name[2] == '_')
}

// isPartition tells whether the disk that name would be a part of is listed:
// sda1 of sda, nvme0n1p2 of nvme0n1. A lone xvda1, as some clouds have it, is
// a disk.
func isPartition(disks []diskCount, name string) bool {
	whole := strings.TrimRight(name, "0123456789")
	if whole == name || whole == "" {
		return false
	}
	if n := len(whole); n > 1 && whole[n-1] == 'p' && isDigit(whole[n-2]) {
		whole = whole[:n-1]
	}
	return findDisk(disks, whole, 0) != nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
