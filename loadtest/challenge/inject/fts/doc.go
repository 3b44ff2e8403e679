// Package fts injects copies as jobs of an FTS3 service, by its REST API.
package fts
