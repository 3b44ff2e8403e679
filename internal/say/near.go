package say

import "strings"

// Nearest returns the known word that was probably meant by word: the word that takes at most two
// edits, in any case of the letters, or that begins with word or is the beginning of it. It returns
// "" if no word is near.
func Nearest(word string, known []string) string {
	best, distance := "", 3
	for _, k := range known {
		if d := edits(strings.ToLower(word), k); d < distance && d < len(k) {
			best, distance = k, d
		}
	}
	if best != "" {
		return best
	}
	for _, k := range known {
		if len(word) > 2 && (strings.HasPrefix(k, word) || strings.HasPrefix(word, k) && len(k) > 2) {
			return k
		}
	}
	return ""
}

// edits counts the characters to insert, remove, change or swap with their
// neighbor on the way from a to b. Long words are far from everything.
func edits(a, b string) int {
	if len(a) > 40 || len(b) > 40 {
		return 40
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
