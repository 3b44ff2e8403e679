package export

import _ "embed"

//go:embed grafana/weir-load-tests.json
var grafana string

// Grafana returns a dashboard for runs in a Prometheus server as JSON
// (https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/).
// Data source, run and window of rates are variables.
func Grafana() string { return grafana }
