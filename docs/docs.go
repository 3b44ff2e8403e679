// Package docs has the pages of the documentation that are also manual pages.
package docs

import "embed"

// Pages has the pages by their file names.
//
//go:embed scenario.md configuration.md
var Pages embed.FS
