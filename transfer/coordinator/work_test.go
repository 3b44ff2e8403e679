package coordinator

import (
	"errors"
	"net/http"
	"reflect"
	"testing"

	"weir/internal/require"
	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/transfertest"
)

// A dataset is requested, dispatched, reported and completed.
func TestARequestIsCarriedOut(t *testing.T) {
	t.Parallel()
	h := start(t, Config{})
	a, b := h.FakeAgent("A"), h.FakeAgent("B")
	a.Register("https://127.0.0.1:1/")
	if w := b.Register(""); w.Issuer == "" || len(w.Keys) == 0 || len(w.Audience) != 1 || w.Now.IsZero() {
		t.Errorf("%+v", w)
	}
	h.Register("/store/run1", "A", 20, 1000)
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/run1", To: "B", Approve: true})
	require.NoError(t, err)
	for !q.Status.Ended() {
		w := b.Work()
		var all []transfer.Outcome
		for _, l := range w.Leases {
			if l.Mode != transfer.Pull || l.Source.Token == "" || l.Source.URL != "https://127.0.0.1:1"+l.Name || l.AtOnce == 0 {
				t.Errorf("lease %+v", l)
			}
			all = append(all, transfertest.Verified(l))
		}
		if _, err := b.Report(all...); err != nil {
			t.Fatal(err)
		}
		if q, err = h.Client.Request(t.Context(), q.ID); err != nil {
			t.Fatal(err)
		}
	}
	if q.Status != transfer.Completed || q.Count.Done != 20 {
		t.Errorf("%+v", q)
	}
	m, err := h.Client.Manifest(t.Context(), q.ID)
	if err != nil || len(m.Items) != 20 || m.Digest == "" {
		t.Errorf("%+v, %v", m, err)
	}
	var each []transfer.Item
	same, err := h.Client.EachItem(t.Context(), q.ID, func(one transfer.Item) error { each = append(each, one); return nil })
	if err != nil || !reflect.DeepEqual(each, m.Items) || same.Digest != m.Digest || same.Request.ID != q.ID || digestOf(each) != m.Digest {
		t.Errorf("%+v and %d files, %v", same, len(each), err)
	}
	enough := errors.New("enough")
	if _, err := h.Client.EachItem(t.Context(), q.ID, func(transfer.Item) error { return enough }); !errors.Is(err, enough) {
		t.Error(err)
	}
	if _, err := h.Client.EachItem(t.Context(), 99, nil); wire.Status(err) != http.StatusNotFound {
		t.Error(err)
	}
	files, err := h.Client.Files(t.Context(), "/store/run1", "", 0)
	if err != nil || len(files) != 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		if len(f.Replicas) != 2 || f.Replicas[1].Site != "B" || f.Replicas[1].Verified.IsZero() {
			t.Errorf("%+v", f)
		}
	}
}

// digestOf returns the digest of a manifest with these files, which are sorted by name.
func digestOf(items []transfer.Item) string {
	sum := transfer.NewManifestHash()
	for _, one := range items {
		sum.Add(one)
	}
	return sum.Digest()
}
