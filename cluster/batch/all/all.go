// Package all is the registry of batch systems.
package all

import (
	"fmt"
	"strings"

	"weir/cluster/batch"
	"weir/cluster/batch/htcondor"
	"weir/cluster/batch/kubernetes"
	"weir/cluster/batch/shell"
	"weir/cluster/batch/slurm"
	"weir/scenario"
)

// Open returns the system that a scenario calls by this word (on.batch).
func Open(word scenario.Batch) (batch.System, error) {
	switch word {
	case scenario.LocalBatch:
		return shell.Local(), nil
	case scenario.SSHBatch:
		return shell.SSH(), nil
	case scenario.HTCondorBatch:
		return htcondor.New(), nil
	case scenario.SlurmBatch:
		return slurm.New(), nil
	case scenario.KubernetesBatch:
		return kubernetes.New(), nil
	default:
		return nil, fmt.Errorf("unknown batch system %q: use one of %s", word, strings.Join(scenario.Batches(), ", "))
	}
}
