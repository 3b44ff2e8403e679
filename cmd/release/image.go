package main

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"
)

// A layer is the program of an image for one architecture.
type layer struct {
	arch    string
	program []byte
}

// imageUser is the user that the program runs as in containers.
const imageUser = 65532

// A descriptor refers to a blob of an image: https://github.com/opencontainers/image-spec/blob/v1.1.0/descriptor.md
type descriptor struct {
	Type        string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Platform    *platform         `json:"platform,omitempty"`
}

type platform struct {
	OS   string `json:"os"`
	Arch string `json:"architecture"`
}

// An image is an OCI image layout in the making.
type image struct{ files []file }

// add adds a blob.
func (m *image) add(kind string, data []byte) descriptor {
	sum := fmt.Sprintf("%x", sha256.Sum256(data))
	m.files = append(m.files, file{path: "blobs/sha256/" + sum, mode: 0o644, data: data})
	return descriptor{Type: "application/vnd.oci.image." + kind, Digest: "sha256:" + sum, Size: len(data)}
}

// addJSON adds a blob of JSON.
func (m *image) addJSON(kind string, value any) (descriptor, error) {
	text, err := json.Marshal(value)
	return m.add(kind, text), err
}

// image writes weir-VERSION-oci.tar, an OCI image layout with an image for each architecture. The images have the program, a user
// and a folder for state, and nothing else.
func (r *release) image(layers []layer) error {
	var m image
	var all []descriptor
	for _, l := range layers {
		d, err := r.addImage(&m, l)
		if err != nil {
			return err
		}
		all = append(all, d)
	}
	index, err := m.addJSON("index.v1+json", map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": all,
	})
	if err != nil {
		return err
	}
	index.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.version}
	top, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []descriptor{index}})
	if err != nil {
		return err
	}
	files := append([]file{
		{path: "oci-layout", mode: 0o644, data: []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{path: "index.json", mode: 0o644, data: top},
	}, m.files...)
	archive, err := tarOf(files, r.at)
	if err != nil {
		return err
	}
	return r.write("weir-"+r.version+"-oci.tar", archive)
}

// addImage adds the image of one architecture and returns its manifest.
func (r *release) addImage(m *image, l layer) (manifest descriptor, err error) {
	content, err := tarOf([]file{
		{path: "etc/passwd", mode: 0o644, data: fmt.Appendf(nil, "weir:x:%d:%d::/var/lib/weir:/\n", imageUser, imageUser)},
		{path: "etc/group", mode: 0o644, data: fmt.Appendf(nil, "weir:x:%d:\n", imageUser)},
		{path: "tmp/", mode: 0o1777},
		{path: "usr/bin/weir", mode: 0o755, data: l.program},
		{path: "var/lib/weir/", mode: 0o700, uid: imageUser},
	}, r.at)
	if err != nil {
		return manifest, err
	}
	packed, err := gzipOf(content, gzip.DefaultCompression)
	if err != nil {
		return manifest, err
	}
	at := r.at.Format(time.RFC3339)
	conf, err := m.addJSON("config.v1+json", map[string]any{
		"os": "linux", "architecture": l.arch, "created": at,
		"config": map[string]any{
			"User": fmt.Sprintf("%d:%d", imageUser, imageUser), "Entrypoint": []string{"/usr/bin/weir"}, "WorkingDir": "/var/lib/weir",
			"Env":    []string{"PATH=/usr/bin", "HOME=/var/lib/weir"},
			"Labels": map[string]string{"org.opencontainers.image.version": r.version, "org.opencontainers.image.revision": r.commit},
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(content))}},
		"history": []map[string]string{{"created": at, "created_by": "make release"}},
	})
	if err != nil {
		return manifest, err
	}
	manifest, err = m.addJSON("manifest.v1+json", map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": conf,
		"layers": []descriptor{m.add("layer.v1.tar+gzip", packed)},
	})
	manifest.Platform = &platform{"linux", l.arch}
	return manifest, err
}
