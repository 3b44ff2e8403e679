// Package all is the registry of batch systems.
package all

import (
	"fmt"
	"strings"

	"weir/loadtest/cluster/batch"
	"weir/loadtest/cluster/batch/htcondor"
	"weir/loadtest/cluster/batch/kubernetes"
	"weir/loadtest/cluster/batch/shell"
	"weir/loadtest/cluster/batch/slurm"
	"weir/loadtest/scenario"
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
