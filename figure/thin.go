package figure

// MostPoints is how many points of one line are drawn without a script.
const MostPoints = 600

// Thin keeps at most MostPoints points of a time series: of each stretch the
// lowest and the highest, in their order, so that no peak is lost.
func Thin(points []Point) []Point { return ThinTo(points, MostPoints) }

// ThinTo is Thin with another limit. What is not longer is returned as it is.
func ThinTo(points []Point, most int) []Point {
	if len(points) <= most {
		return points
	}
	stretches := max(1, most/2)
	out := make([]Point, 0, 2*stretches)
	for i := range stretches {
		part := points[i*len(points)/stretches : (i+1)*len(points)/stretches]
		low, high := 0, 0
		for k := range part {
			if part[k].Y < part[low].Y {
				low = k
			}
			if part[k].Y > part[high].Y {
				high = k
			}
		}
		out = append(out, part[min(low, high)])
		if low != high {
			out = append(out, part[max(low, high)])
		}
	}
	return out
}
