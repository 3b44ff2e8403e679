// Package rucio injects copies as rules of Rucio, by its REST API.
package rucio
