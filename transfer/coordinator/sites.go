package coordinator

import (
	"weir/transfer"
	"weir/transfer/api"
	"weir/transfer/catalog"
)

// addSite adds a site without an agent, or changes it.
func (c *Coordinator) addSite(q *api.Call, in *transfer.NewSite) (catalog.Site, error) {
	return c.registry.Add(q.Context(), in, q.Name)
}

// removeSite removes a site from the catalog.
func (c *Coordinator) removeSite(q *api.Call, _ *struct{}) (none struct{}, err error) {
	return none, c.registry.Remove(q.Context(), q.PathValue("name"), q.Name)
}

func (c *Coordinator) listSites(q *api.Call, _ *struct{}) ([]catalog.Site, error) {
	list, err := c.registry.List(q.Context())
	return api.OrEmpty(list), err
}
