// Package all is the registry of batch systems.
package all

import (
	"fmt"

	"weir/cluster/batch"
	"weir/cluster/batch/htcondor"
	"weir/cluster/batch/kubernetes"
	"weir/cluster/batch/shell"
	"weir/cluster/batch/slurm"
)

// Open returns the system that a scenario calls by this word (on.batch).
func Open(word string) (batch.System, error) {
	switch word {
	case "local":
		return shell.Local(), nil
	case "ssh":
		return shell.SSH(), nil
	case "htcondor":
		return htcondor.New(), nil
	case "slurm":
		return slurm.New(), nil
	case "kubernetes":
		return kubernetes.New(), nil
	default:
		return nil, fmt.Errorf("unknown batch system %q: use htcondor, slurm, kubernetes, ssh or local", word)
	}
}
