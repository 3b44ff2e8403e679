package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"weir/loadtest/cluster/batch"
	"weir/loadtest/scenario"
)

// fields are the fields of an object of Kubernetes, with the names of its API.
type fields = map[string]any

const (
	label      = "weir-submission" // of the Job, its pods and its Secret; its value is the tag
	filesDir   = "/weir/files"     // in the container: the Secret
	workDir    = "/weir/work"      // in the container: an empty folder on the node's disk
	mostSecret = 1 << 20           // bytes that a Secret may have
	keepEnded  = time.Hour         // time for which an ended Job is kept if its run was killed
	grace      = 20                // seconds that a pod may take to end
)

// options are the options of a Work.
type options struct {
	on             scenario.Kubernetes
	pod, container fields // further fields, of the user
}

// readOptions reads the options of a Work: the block on.kubernetes of a scenario in JSON, and lines with fields of a
// pod in YAML.
func readOptions(lines []string) (o options, err error) {
	if len(lines) == 0 || json.Unmarshal([]byte(lines[0]), &o.on) != nil {
		return o, errors.New("on.kubernetes is missing: write at least its image")
	}
	if err := o.on.Check(); err != nil {
		return o, err
	}
	for _, line := range lines[1:] {
		var more fields
		if err := yaml.Unmarshal([]byte(line), &more); err != nil || len(more) == 0 {
			return o, fmt.Errorf("on.submit: %q: write fields of the pod's spec in YAML, as in \"priorityClassName: batch\"", line)
		}
		if list, ok := more["containers"]; ok {
			all, _ := list.([]any)
			if len(all) != 1 {
				return o, fmt.Errorf("on.submit: %q: weir's pods have one container: write its fields, as in \"containers: [{env: [...]}]\"", line)
			}
			one, _ := all[0].(fields)
			o.container = merge(o.container, one)
			delete(more, "containers")
		}
		o.pod = merge(o.pod, more)
	}
	for _, name := range []string{"args", "name", "image", "restartPolicy"} {
		if o.container[name] != nil || o.pod[name] != nil {
			return o, fmt.Errorf("on.submit: weir sets %s itself: leave it out", name)
		}
	}
	return o, nil
}

// pairs reads texts such as cpu=4, which have been checked.
func pairs(texts []string) fields {
	all := fields{}
	for _, t := range texts {
		key, value, _ := strings.Cut(t, "=")
		all[key] = value
	}
	return all
}

// tolerations reads texts such as KEY=VALUE:EFFECT, KEY:EFFECT and KEY, which have been checked.
func tolerations(texts []string) (all []any) {
	for _, t := range texts {
		taint, effect, _ := strings.Cut(t, ":")
		one := fields{"operator": "Exists"}
		if key, value, equal := strings.Cut(taint, "="); equal {
			one = fields{"operator": "Equal", "key": key, "value": value}
		} else {
			one["key"] = key
		}
		if effect != "" {
			one["effect"] = effect
		}
		all = append(all, one)
	}
	return all
}

// theContainer returns the container of the pods.
func (j *job) theContainer(w *batch.Work) fields {
	args := []any{"pod"}
	for _, a := range w.Args {
		args = append(args, strings.ReplaceAll(a, "$", "$$")) // else Kubernetes replaces $(NAME)
	}
	return merge(fields{
		"securityContext": fields{
			"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": fields{"drop": []any{"ALL"}},
		},
		"resources": fields{"requests": pairs(j.on.Requests), "limits": pairs(j.on.Limits)},
	}, j.container, fields{
		"name": "weir", "image": j.on.Image, "args": args,
		"env": []any{
			fields{"name": "TMPDIR", "value": workDir}, fields{"name": submissionVariable, "value": j.sub.Tag},
		},
		"volumeMounts": []any{
			fields{"name": "weir-files", "mountPath": filesDir, "readOnly": true}, fields{"name": "weir-work", "mountPath": workDir},
		},
	})
}

// thePod returns the spec of the pods.
func (j *job) thePod(w *batch.Work) fields {
	usual := fields{
		"securityContext":              fields{"runAsNonRoot": true, "seccompProfile": fields{"type": "RuntimeDefault"}},
		"automountServiceAccountToken": false, "enableServiceLinks": false, "terminationGracePeriodSeconds": grace,
		"nodeSelector": pairs(j.on.NodeSelector), "tolerations": tolerations(j.on.Tolerations),
	}
	if j.on.ServiceAccount != "" {
		usual["serviceAccountName"] = j.on.ServiceAccount
	}
	return merge(usual, j.pod, fields{
		"restartPolicy": "Never", "containers": []any{j.theContainer(w)},
		"volumes": []any{
			fields{"name": "weir-files", "secret": fields{"secretName": j.sub.Tag}}, fields{"name": "weir-work", "emptyDir": fields{}},
		},
	})
}

// manifest returns the Job.
func (j *job) manifest(w *batch.Work) ([]byte, error) {
	labels := fields{label: j.sub.Tag, "app.kubernetes.io/name": "weir"}
	return json.MarshalIndent(fields{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": fields{"name": j.sub.Tag, "labels": labels, "annotations": fields{"weir-run": batch.Words(w.Name, nil)}},
		"spec": fields{
			// With backoffLimit 0 the first worker that fails would end all others.
			"completionMode": "Indexed", "completions": w.Count, "parallelism": w.Count, "backoffLimitPerIndex": 0,
			"podReplacementPolicy":    "Failed",
			"ttlSecondsAfterFinished": int(keepEnded / time.Second), "activeDeadlineSeconds": int(time.Duration(j.on.Deadline) / time.Second),
			"template": fields{"metadata": fields{"labels": labels}, "spec": j.thePod(w)},
		},
	}, "", "  ")
}

// secret returns the Secret with the files of a Job with this UID.
func (j *job) secret(uid string, data map[string][]byte) ([]byte, error) {
	return json.Marshal(fields{
		"apiVersion": "v1", "kind": "Secret", "immutable": true, "data": data,
		"metadata": fields{
			"name": j.sub.Tag, "labels": fields{label: j.sub.Tag, "app.kubernetes.io/name": "weir"},
			"ownerReferences": []any{fields{"apiVersion": "batch/v1", "kind": "Job", "name": j.sub.Tag, "uid": uid, "controller": true}},
		},
	})
}

// secretData reads the files of the workers for the Secret.
func secretData(files []string) (map[string][]byte, error) {
	data, total := map[string][]byte{}, 0
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		name := filepath.Base(f)
		if strings.Contains(name, "+") || strings.HasPrefix(name, "..") {
			return nil, fmt.Errorf("%s: a Secret of Kubernetes cannot have a file of this name", f)
		}
		if total += len(text); total > mostSecret {
			return nil, fmt.Errorf("%s: files of more than %d MiB do not fit into a Secret of Kubernetes", f, mostSecret>>20)
		}
		data[name] = text
	}
	return data, nil
}

// merge returns an object with the fields of all; a later value replaces an earlier value. Objects
// are merged in turn, and lists are joined.
func merge(all ...fields) fields {
	merged := fields{}
	for _, one := range all {
		one = maps.Clone(one)
		for key, value := range one {
			switch old := merged[key].(type) {
			case fields:
				if v, ok := value.(fields); ok {
					value = merge(old, v)
				}
			case []any:
				if v, ok := value.([]any); ok {
					value = append(old[:len(old):len(old)], v...)
				}
			}
			merged[key] = value
		}
	}
	return merged
}
