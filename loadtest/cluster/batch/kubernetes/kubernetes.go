// Package kubernetes starts workers as the pods of an indexed Job. Their image contains the
// program; files are in a Secret that the Job owns. The outputs of workers are fetched from the
// logs of their pods (see Pod), so nothing needs to be shared or installed, and no container needs
// a shell. kubectl is the client.
package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir/loadtest/cluster/batch"
)

// A System submits to the cluster that kubectl on PATH talks to.
type System struct{}

// New returns the system.
func New() *System { return &System{} }

const system = "Kubernetes"

// Name implements batch.System.
func (*System) Name() string { return system }

// A job is one Job with its pods and its Secret, all named by the tag of the submission.
type job struct {
	*batch.Ledger
	sub *batch.Submission
	options

	asking sync.Mutex // one request at a time; guards the fields below
	seen   map[int]bool
	tries  map[int]int // number of failed attempts to fetch the outputs of a worker
	failed error       // missing outputs
	looked time.Time   // time of the last look at events
	// reasons are the latest warnings by object.
	reasons map[string]string
}

func newJob(sub *batch.Submission, o options) *job {
	return &job{Ledger: batch.NewLedger(sub.Count), sub: sub, options: o, seen: map[int]bool{}, tries: map[int]int{}}
}

// id returns the name of a worker: the host name of its pod.
func (j *job) id(worker int) string { return j.sub.Tag + "-" + strconv.Itoa(worker) }

// kubectl returns a command line for the namespace of the submission.
func (j *job) kubectl(args ...string) []string {
	argv := []string{"kubectl", "--namespace=" + j.on.Namespace, "--request-timeout=1m"}
	if j.on.Context != "" {
		argv = append(argv, "--context="+j.on.Context)
	}
	return append(argv, args...)
}

// Submit implements batch.System. Work.Options are the options of scenario.On. The image must
// contain the version of weir that submits: Work.Program is not transferred.
func (*System) Submit(ctx context.Context, w batch.Work) (batch.Job, error) {
	o, err := readOptions(w.Options)
	if err != nil {
		return nil, err
	}
	sub, err := batch.Begin(system, &w)
	if err != nil {
		return nil, err
	}
	j := newJob(sub, o)
	// Ctrl-C must not leave it open whether there are pods: it does not end the submission.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Minute)
	defer cancel()
	made, err := j.submit(bounded, &w)
	if err = errors.Join(err, ctx.Err()); err == nil {
		return j, nil
	}
	if made {
		return nil, errors.Join(err, j.Remove(bounded))
	}
	sub.Over = true
	return nil, errors.Join(err, sub.Write())
}

// submit makes the Job and its Secret. made reports whether there may be a Job.
func (j *job) submit(ctx context.Context, w *batch.Work) (made bool, err error) {
	if err := j.locate(ctx); err != nil {
		return false, err
	}
	data, err := secretData(w.Files)
	if err != nil {
		return false, err
	}
	text, err := j.manifest(w)
	if err != nil {
		return false, err
	}
	for i := range w.Count {
		if err := os.MkdirAll(j.sub.Out(i), 0o755); err != nil {
			return false, err
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(w.Dir, "job.json"), text, 0o644), j.permitted(ctx)); err != nil {
		return false, err
	}
	j.sub.IDs = []string{j.on.Namespace + "/" + j.sub.Tag}
	if err := j.sub.Write(); err != nil {
		return false, err
	}
	created, err := j.create(ctx, text)
	if err != nil {
		_, unsure := batch.TransientAnswer(system, err.Error())
		return unsure, err
	}
	if created.Spec.BackoffLimitPerIndex == nil {
		return true, errors.New("this Kubernetes ends all workers of a Job when one fails: weir needs version 1.29 (backoffLimitPerIndex)")
	}
	for i := range w.Count {
		j.Note(batch.Change{Worker: i, State: batch.Queued, JobID: j.id(i)})
	}
	secret, err := j.secret(created.Metadata.UID, data)
	if err == nil {
		_, err = j.create(ctx, secret)
	}
	return true, err
}

// create creates an object. If an earlier attempt has created it, the existing object is used.
func (j *job) create(ctx context.Context, text []byte) (created object, err error) {
	err = batch.Retry(ctx, system, func() error {
		said, err := batch.Run(ctx, strings.NewReader(string(text)), j.kubectl("create", "--validate=false", "-o", "json", "-f", "-")...)
		if err != nil && strings.Contains(err.Error(), "(AlreadyExists)") {
			said, err = batch.Run(ctx, nil, j.kubectl("get", "job", j.sub.Tag, "-o", "json")...)
		}
		if err == nil {
			err = json.Unmarshal([]byte(said), &created)
		}
		return err
	}, nil)
	return created, err
}

// locate finds the context and the namespace that kubectl uses, so that the submission is found
// again when the settings of kubectl have changed.
func (j *job) locate(ctx context.Context) error {
	if j.on.Namespace == "" || j.on.Context == "" {
		used, namespace, err := current(ctx, j.on.Context)
		if err != nil {
			return err
		}
		j.on.Context, j.on.Namespace = used, cmp.Or(j.on.Namespace, namespace, "default")
	}
	line, err := json.Marshal(j.on)
	j.sub.Options = append([]string{string(line)}, j.sub.Options[1:]...)
	return err
}

// current returns the context that kubectl uses, which is name unless name is empty, and its
// namespace. In a pod without a kubeconfig kubectl uses the pod's service account, which has no
// context.
func current(ctx context.Context, name string) (used, namespace string, err error) {
	said, err := batch.Run(ctx, nil, "kubectl", "config", "view", "--minify", "-o", "json", "--context="+name)
	if err != nil && strings.Contains(err.Error(), "current-context must exist") {
		inside, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
		if err != nil {
			err = errors.New("kubectl knows no cluster: set KUBECONFIG to a kubeconfig file with a current context, or write on.kubernetes.context")
		}
		return "", string(inside), err
	}
	if err != nil {
		return "", "", err
	}
	var config struct {
		Current  string `json:"current-context"`
		Contexts []struct {
			Context struct {
				Namespace string `json:"namespace"`
			} `json:"context"`
		} `json:"contexts"`
	}
	if err := json.Unmarshal([]byte(said), &config); err != nil {
		return "", "", fmt.Errorf("kubectl config view: %w", err)
	}
	if len(config.Contexts) > 0 {
		namespace = config.Contexts[0].Context.Namespace
	}
	return cmp.Or(name, config.Current), namespace, nil
}

// permissions returns the permissions that a submission needs in its namespace. Warnings are also
// shown if events may be listed.
func permissions() [][3]string {
	return [][3]string{
		{"create", "batch", "jobs"}, {"get", "batch", "jobs"}, {"list", "batch", "jobs"}, {"delete", "batch", "jobs"},
		{"get", "", "pods"}, {"list", "", "pods"}, {"get", "", "pods/log"}, {"create", "", "secrets"}, {"delete", "", "secrets"},
	}
}

// permitted checks that this user has all permissions that a submission needs, before any object is
// made.
func (j *job) permitted(ctx context.Context) error {
	var reviews []any
	for _, p := range permissions() {
		resource, sub, _ := strings.Cut(p[2], "/")
		reviews = append(reviews, fields{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": fields{"resourceAttributes": fields{
				"namespace": j.on.Namespace, "verb": p[0], "group": p[1], "resource": resource, "subresource": sub}},
		})
	}
	text, err := json.Marshal(fields{"apiVersion": "v1", "kind": "List", "items": reviews})
	if err != nil {
		return err
	}
	var said string
	err = batch.Retry(ctx, system, func() (err error) {
		said, err = batch.Run(ctx, strings.NewReader(string(text)), j.kubectl("create", "--validate=false", "-o", "json", "-f", "-")...)
		return err
	}, nil)
	if err != nil {
		return err
	}
	return denied(said, j.on.Namespace)
}

// denied lists the permissions that are denied by the reviews in the output of kubectl create.
func denied(said, namespace string) error {
	var missing []string
	reader := json.NewDecoder(strings.NewReader(said))
	for range permissions() {
		var review struct {
			Spec struct {
				ResourceAttributes struct{ Verb, Group, Resource, Subresource string }
			}
			Status struct{ Allowed bool }
		}
		if err := reader.Decode(&review); err != nil {
			return fmt.Errorf("unexpected output of kubectl create: %w", err)
		}
		if a := review.Spec.ResourceAttributes; !review.Status.Allowed {
			resource := a.Resource
			if a.Group != "" {
				resource += "." + a.Group
			}
			if a.Subresource != "" {
				resource += "/" + a.Subresource
			}
			missing = append(missing, a.Verb+" "+resource)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("this user of Kubernetes lacks permissions in namespace %s: %s: a Role must allow them", namespace,
		strings.Join(missing, ", "))
}

// Find implements batch.System.
func (*System) Find(ctx context.Context, dir string) (batch.Job, error) {
	sub, err := batch.ReadSubmission(dir, system)
	if err != nil {
		return nil, err
	}
	o, err := readOptions(sub.Options)
	if err != nil {
		return nil, fmt.Errorf("%s: this is not what weir has written: %w", dir, err)
	}
	j := newJob(sub, o)
	if len(sub.IDs) == 0 {
		sub.Over = true // killed before anything was made
	}
	for i := range sub.Count {
		state := batch.Queued
		if sub.Over {
			state = batch.Removed
		}
		j.Note(batch.Change{Time: sub.Begin, Worker: i, State: state, JobID: j.id(i), Exit: -1})
	}
	if sub.Over {
		return j, nil
	}
	return j, j.poll(ctx)
}

// Remove implements batch.Job.
func (j *job) Remove(ctx context.Context) error {
	if len(j.sub.IDs) > 0 {
		_ = j.poll(ctx) // workers that have ended by themselves count as ended, not as removed
	}
	j.asking.Lock()
	defer j.asking.Unlock()
	if err := j.clear(ctx); err != nil {
		return err
	}
	for i := range j.sub.Count {
		j.Note(batch.Change{Worker: i, State: batch.Removed, JobID: j.id(i)})
	}
	j.End()
	return nil
}

// clear deletes the Job, its pods and its Secret, and returns when they are gone.
func (j *job) clear(ctx context.Context) error {
	if j.sub.Over {
		return nil
	}
	if len(j.sub.IDs) > 0 {
		_, err := batch.Ask(ctx, system, j.kubectl("delete", "job/"+j.sub.Tag, "secret/"+j.sub.Tag, "--ignore-not-found", "--cascade=foreground",
			"--timeout=3m")...)
		if err != nil {
			return fmt.Errorf("job %s in namespace %s: %w", j.sub.Tag, j.on.Namespace, err)
		}
	}
	j.sub.Over = true
	return j.sub.Write()
}
