package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/tpc"
	"weir/lab/labtest"
	"weir/transfer/access"
	v1 "weir/transfer/api/v1"
	"weir/transfer/fts"
	"weir/transfer/transfertest"
)

// Responses to generated requests match the OpenAPI description, and requests that it does not
// allow are refused. The parameters are generated, or are the parameters of an existing request,
// job and dataset.
func TestSchemathesis(t *testing.T) {
	tier.Full(t, "thousands of generated requests")
	program := labtest.Schemathesis(t)
	iam := labtest.StartIAM(t, labtest.IAMConfig{}) // generated requests would revoke a token of weir itself
	h := start(t, Config{Plain: true, Approve: -1, JobArea: tpc.Loopback, SiteCA: iam.CAFile,
		Issuers: []access.Issuer{{URL: iam.URL, Roles: map[string][]string{access.FTSScope: {access.MayAdmin}}}}})
	raw := iam.Token("root", access.FTSScope, nil)
	_, b, q := h.pair(3)
	leases := b.WaitWork()
	_, err := b.Report(transfertest.Verified(leases[0]), transfertest.Verified(leases[1]))
	require.NoError(t, err)
	var made fts.SubmittedJob
	job := fts.NewJob{Files: []fts.NewJobFile{{Sources: []string{"https://127.0.0.1:1/a"}, Destinations: []string{"https://127.0.0.1:2/a"}}}}
	require.NoError(t, json.Unmarshal(h.ask(t, "POST", "/fts/jobs", raw, job, http.StatusOK), &made))
	jobs, err := h.queue.Read.Jobs(t.Context(), []string{made.ID})
	require.NoError(t, err)
	files, err := h.queue.Read.JobFiles(t.Context(), jobs[0])
	require.NoError(t, err)
	existing := fmt.Sprintf("[parameters]\n\"path.number\" = %d\n\"path.ids\" = %q\n\"path.file\" = \"%d\"\n\"path.files\" = \"%d\"\n"+
		"\"query.name\" = \"/store/run1\"\n", q.ID, made.ID, files[0].ID, files[0].ID)
	for _, one := range []struct {
		config string
		flags  []string
	}{
		{"", []string{"--phases", "coverage,fuzzing", "--max-examples", "20"}},
		{existing, []string{"--phases", "fuzzing", "--max-examples", "5", "--mode", "positive"}},
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "schemathesis.toml"), []byte(one.config), 0o600))
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		defer stop()
		c := exec.CommandContext(ctx, program, append([]string{"run", h.URL() + v1.OpenAPIPath, "--no-color", "-H", "Authorization:Bearer " + raw,
			"--checks", "not_a_server_error,response_schema_conformance,status_code_conformance,content_type_conformance,negative_data_rejection",
			"--request-timeout", "2", // for streams, which do not end
			"--generation-deterministic", "--continue-on-failure"}, one.flags...)...)
		c.Dir = dir
		said, err := c.CombinedOutput()
		t.Logf("%s", said)
		require.NoError(t, err)
	}
}
