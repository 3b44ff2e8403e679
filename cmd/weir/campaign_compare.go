package main

// compare compares the campaign's runs and writes what that shows.
func (r *campaigner) compare() error {
	return nil
}
