package catalog

// A SiteKind determines how the files of a site are read and written.
type SiteKind string

// The kinds of sites.
const (
	AgentSite SiteKind = "agent" // by the site's own agent
	URLSite   SiteKind = "url"   // as HTTPSite, but no administrator has added it: it was in the URLs of a job
	HTTPSite  SiteKind = "http"  // by HTTP third-party copy: XRootD, dCache, StoRM, EOS
)
