package v1

import (
	"weir/transfer"
	"weir/transfer/api"
	"weir/transfer/catalog"
)

// addSite adds a site without an agent, or changes it.
func (h *Handlers) addSite(q *api.Call, in *transfer.NewSite) (catalog.Site, error) {
	return h.Registry.Add(q.Context(), in, q.Name)
}

// removeSite removes a site from the catalog.
func (h *Handlers) removeSite(q *api.Call, _ *struct{}) (none struct{}, err error) {
	return none, h.Registry.Remove(q.Context(), q.PathValue("name"), q.Name)
}

func (h *Handlers) listSites(q *api.Call, _ *struct{}) ([]catalog.Site, error) {
	list, err := h.Registry.List(q.Context())
	return api.OrEmpty(list), err
}
