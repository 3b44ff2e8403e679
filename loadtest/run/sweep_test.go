package run

import "testing"

func TestWithin(t *testing.T) {
	const folder = "weir-20260301-120000-abcdef"
	for _, good := range []string{folder + "/", folder + "/f000001.dat", folder + "/c0001/", folder + "/c0001/w00001"} {
		if err := within([]string{good}, folder); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{
		"", "/", ".", "..", "others.txt", "others/", "/etc/passwd", folder, "weir-", folder + "x/f", folder + "/../others.txt",
		"../" + folder + "/f", folder + "//f", folder + "/./f", folder + "/..", "/" + folder + "/f",
	} {
		if within([]string{folder + "/f", bad}, folder) == nil {
			t.Errorf("%q passes", bad)
		}
	}
	if within([]string{"weir-../f"}, "weir-../..") == nil {
		t.Error("a run with a name that leads elsewhere passes")
	}
}
