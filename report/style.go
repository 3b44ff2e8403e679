package report

// Style returns the style sheet of the report, for pages that show its figures
// as SVG.
func Style() string { return styleText }
