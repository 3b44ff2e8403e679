package lab

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"weir/internal/tarfile"
)

// An image is a container image of one program.
type image struct {
	name    string
	program string   // its file here
	argv    []string // its path in the image, and arguments
}

// write writes the image as a tar file of an OCI image layout.
func (i image) write(path string) error {
	layer, err := os.CreateTemp(filepath.Dir(path), "layer-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(layer.Name()) }() // the system's folder contains the layer
	defer layer.Close()
	sum := sha256.New()
	t := tar.NewWriter(io.MultiWriter(layer, sum))
	err = tarfile.AddFile(t, i.program, tar.Header{Name: strings.TrimPrefix(i.argv[0], "/"), Mode: 0o755})
	for _, dir := range []string{"tmp/", "lib/", "lib64/", "usr/"} { // libraries of this machine can be mounted there
		err = errors.Join(err, t.WriteHeader(&tar.Header{Name: dir, Mode: 0o1777, Typeflag: tar.TypeDir}))
	}
	if err = errors.Join(err, t.Close()); err != nil {
		return err
	}
	info, err := layer.Stat()
	if err != nil {
		return err
	}
	const kind = "application/vnd.oci.image."
	digest := fmt.Sprintf("%x", sum.Sum(nil))
	conf, err := json.Marshal(map[string]any{
		"os": "linux", "architecture": runtime.GOARCH, "config": map[string]any{"User": "65532:65532", "Entrypoint": i.argv},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest}},
	})
	if err != nil {
		return err
	}
	blob := func(media, digest string, size int64) map[string]any {
		return map[string]any{"mediaType": kind + media, "digest": "sha256:" + digest, "size": size}
	}
	hash := func(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": kind + "manifest.v1+json", "config": blob("config.v1+json", hash(conf), int64(len(conf))),
		"layers": []any{blob("layer.v1.tar", digest, info.Size())},
	})
	if err != nil {
		return err
	}
	top := blob("manifest.v1+json", hash(manifest), int64(len(manifest)))
	top["annotations"] = map[string]string{"io.containerd.image.name": i.name}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []any{top}})
	if err != nil {
		return err
	}
	return writeLayout(path, layer.Name(), digest, map[string][]byte{
		"oci-layout": []byte(`{"imageLayoutVersion": "1.0.0"}`), "index.json": index,
		"blobs/sha256/" + hash(conf): conf, "blobs/sha256/" + hash(manifest): manifest,
	})
}

// writeLayout writes a tar file of an image layout with a layer and other files.
func writeLayout(path, layer, digest string, files map[string][]byte) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer out.Close()
	t := tar.NewWriter(out)
	for name, text := range files {
		if err := tarfile.AddText(t, name, text); err != nil {
			return err
		}
	}
	err = tarfile.AddFile(t, layer, tar.Header{Name: "blobs/sha256/" + digest, Mode: 0o644})
	return errors.Join(err, t.Close(), out.Close())
}
