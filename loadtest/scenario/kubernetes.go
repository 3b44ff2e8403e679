package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"weir/internal/document"
	"weir/internal/unit"
)

// Kubernetes describes the pods of the workers.
type Kubernetes struct {
	Image          string        `json:"image,omitempty" doc:"Image of the same version of weir, as in registry.example.org/weir:1.2.3."`
	Context        string        `json:"context,omitempty" doc:"Context of the kubeconfig. Default: its current context."`
	Namespace      string        `json:"namespace,omitempty" doc:"Namespace. Default: that of the context."`
	NodeSelector   []string      `json:"node_selector,omitempty" doc:"Labels of the nodes, as in [disktype=nvme]."`
	Requests       []string      `json:"requests,omitempty" doc:"Resources that each pod requests, as in [cpu=4, memory=2Gi]."`
	Limits         []string      `json:"limits,omitempty" doc:"Limits of its resources, as in [memory=2Gi]."`
	Tolerations    []string      `json:"tolerations,omitempty" doc:"Taints of nodes that it tolerates, as in ['dedicated=load:NoSchedule']."`
	ServiceAccount string        `json:"service_account,omitempty" doc:"Service account of the pods."`
	Deadline       unit.Duration `json:"deadline,omitempty" default:"1d" when:"batch: kubernetes" doc:"Longest time of all workers, after which Kubernetes ends them."`
}

func (k *Kubernetes) isZero() bool {
	return k.Image+k.Context+k.Namespace+k.ServiceAccount == "" && k.Deadline == 0 &&
		len(k.NodeSelector)+len(k.Requests)+len(k.Limits)+len(k.Tolerations) == 0
}

var (
	pair       = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9./_-]*=[A-Za-z0-9._-]+$`)
	toleration = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9./_-]*(=[A-Za-z0-9._-]*)?(:(NoSchedule|PreferNoSchedule|NoExecute))?$`)
)

// mistakes returns pairs of a key and its mistake.
func (k *Kubernetes) mistakes() (all [][2]string) {
	if k.Image == "" {
		all = append(all, [2]string{"image", "missing; name the image of the workers, as in registry.example.org/weir:1.2.3"})
	}
	for _, list := range []struct {
		key    string
		values []string
		right  *regexp.Regexp
		like   string
	}{
		{"node_selector", k.NodeSelector, pair, "disktype=nvme"},
		{"requests", k.Requests, pair, "cpu=4"}, {"limits", k.Limits, pair, "memory=2Gi"},
		{"tolerations", k.Tolerations, toleration, "dedicated=load:NoSchedule"},
	} {
		for _, v := range list.values {
			if !list.right.MatchString(v) {
				all = append(all, [2]string{list.key, fmt.Sprintf("%s: write it as in %s", document.Quote(v), list.like)})
			}
		}
	}
	for _, x := range [][2]string{{"image", k.Image}, {"context", k.Context}, {"namespace", k.Namespace},
		{"service_account", k.ServiceAccount}} {
		if strings.HasPrefix(x[1], "-") || strings.ContainsFunc(x[1], func(r rune) bool { return r <= ' ' }) {
			all = append(all, [2]string{x[0], document.Quote(x[1]) + " is not a name"})
		}
	}
	if k.Deadline < unit.Duration(time.Second) {
		all = append(all, [2]string{"deadline", "use at least 1s"})
	}
	return all
}

// Check returns an error if pods cannot be made of k, whose defaults are filled in.
func (k *Kubernetes) Check() error {
	var all []error
	for _, m := range k.mistakes() {
		all = append(all, fmt.Errorf("on.kubernetes.%s: %s", m[0], m[1]))
	}
	return errors.Join(all...)
}

// onKubernetes checks the block on.kubernetes.
func (c *checker) onKubernetes(o On) {
	if o.Batch != KubernetesBatch {
		c.refuse(!o.Kubernetes.isZero(), "on.kubernetes", "applies to batch: kubernetes only")
		return
	}
	for _, m := range o.Kubernetes.mistakes() {
		c.say("on.kubernetes."+m[0], "%s", m[1])
	}
}

// Options returns the options for the batch system, without the number of workers: the lines of
// Submit; for Kubernetes, the block in JSON precedes them.
func (o On) Options() []string {
	if o.Batch != KubernetesBatch {
		return o.Submit
	}
	b, _ := json.Marshal(o.Kubernetes) // texts and a duration
	return append([]string{string(b)}, o.Submit...)
}
