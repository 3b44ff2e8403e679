// Package conduct carries out a data challenge: it prepares files, holds the target rates, records
// the copies in a run directory and removes them.
package conduct
