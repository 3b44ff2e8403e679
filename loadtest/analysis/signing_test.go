package analysis

import (
	"testing"

	"weir/loadtest/analysis/steps"
	"weir/loadtest/scenario"
	"weir/storage"
)

// TestWorkSaysWhetherRequestsAreSigned checks that the report mentions whether requests were signed
// if a login permits signatures.
func TestWorkSaysWhetherRequestsAreSigned(t *testing.T) {
	for name, c := range map[string]struct {
		driver  storage.DriverName
		auth    storage.AuthMethod
		signed  int64
		ended   int64
		appends string
	}{
		"signed":            {storage.XRootD, storage.X509Auth, 300, 100, ", requests signed (3.00 per operation)"},
		"in part":           {storage.XRootD, storage.X509Auth, 50, 100, ", requests signed (0.500 per operation)"},
		"not signed":        {storage.XRootD, storage.KerberosAuth, 0, 100, ", requests not signed"},
		"nobody logs in":    {storage.XRootD, storage.NoAuth, 0, 100, ""},
		"default login":     {storage.XRootD, "", 0, 100, ""},
		"another protocol":  {storage.WebDAV, storage.TokenAuth, 0, 100, ""},
		"no operation ends": {storage.XRootD, storage.X509Auth, 0, 0, ""},
	} {
		d := &steps.Run{Plan: &scenario.Plan{Driver: c.driver, Auth: storage.Auth{Method: c.auth}}}
		f := &Findings{Work: "read", Curve: []Step{{Done: c.ended - c.ended/4, Errors: c.ended / 4, Signed: c.signed / 2},
			{Signed: c.signed - c.signed/2}}}
		signing(d, f, f.curve())
		if f.Work != "read"+c.appends {
			t.Errorf("%s: %q, want %q added", name, f.Work, c.appends)
		}
	}
}
