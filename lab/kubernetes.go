package lab

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

//go:embed containerd.toml
var containerdConf string

//go:embed kubelet.yaml
var kubeletConf string

//go:embed kubernetes.sh
var nodeScript string

// KubernetesConfig configures a Kubernetes; its zero value is a valid configuration.
type KubernetesConfig struct {
	Config
	Pods    int    // that run at once; 0 means 100
	Program string // the program in KubernetesImage; "": this program
}

// KubernetesImage is the image that a lab's Kubernetes has: it runs the Program of the configuration, as the user 65532.
const KubernetesImage = "weir.test/weir:lab"

const (
	kubernetesNode = "127.0.0.1" // its name: its address, so that no name server is queried
	pauseImage     = "weir.test/pause:1"
	labPods        = 100
)

// kubernetesPrograms returns the programs that `make needs-full` builds.
func kubernetesPrograms() []string {
	return []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl"}
}

// Start starts a Kubernetes of one node, this machine: etcd, API server with RBAC, controllers and scheduler run as a
// plain user; kubelet and containerd run as root in namespaces of their own, with their control groups, so that
// nothing outlives them. Pods use the network of this machine (hostNetwork: true): there is no other. Only root can
// start it.
//
// Env has KUBECONFIG, an administrator's, and the PATH on which kubectl is of the same version. The node has
// KubernetesImage and pulls no images.
func (c KubernetesConfig) Start(ctx context.Context) (*System, error) {
	c.Ready = cmp.Or(c.Ready, 3*time.Minute)
	c.grouped = true
	return c.launch(ctx, "kubernetes", "etcd", func(s *System, _ string) { c.build(s) }, "etcd", "log", "node/cni", "node/run")
}

// Needs returns the programs that it needs.
func (KubernetesConfig) Needs() []string {
	return append([]string{"etcd", "containerd", "containerd-shim-runc-v2", "ctr", "runc", "catatonit", "mount", namespaces, rootUser},
		kubernetesPrograms()...)
}

// A kubernetesUser is a user of the API server, or another owner of a key.
type kubernetesUser struct {
	name, user string
	groups     []string
}

func (c KubernetesConfig) build(s *System) {
	found, err := c.programs(c.Needs())
	s.fail(err)
	cert, key := s.certificate(false, nil)
	store, api := s.newPort(false), s.newPort(false)
	for _, p := range []kubernetesUser{
		{"admin", "lab-admin", []string{"system:masters"}},
		{"controller-manager", "system:kube-controller-manager", nil},
		{"scheduler", "system:kube-scheduler", nil},
		{"kubelet", "system:node:" + kubernetesNode, []string{"system:nodes"}},
		{"apiserver", "lab-apiserver", []string{"system:masters"}},
		{"service-accounts", "service-accounts", nil},
	} {
		kubeUser(s, p, api)
	}
	if s.err != nil {
		return
	}
	controlPlane(s, found, cert, key, store, api)
	c.node(s, found, cert, key)
	s.Batch = "kubernetes"
	s.Env = append(s.Env, "KUBECONFIG="+filepath.Join(s.Dir, "admin.conf"),
		"PATH="+filepath.Dir(found["kubectl"])+string(os.PathListSeparator)+os.Getenv("PATH"))
	s.settled = kubernetesReady(s, api)
}

// controlPlane adds all but the node.
func controlPlane(s *System, found map[string]string, cert, key string, store, api *port) {
	peer, controllers, scheduler := s.newPort(false), s.newPort(false), s.newPort(false)
	at := func(name string) string { return filepath.Join(s.Dir, name) }
	url := func(p *port) string { return "https://" + p.Address() }
	s.part("etcd", askListener(store.Address()), found["etcd"], "--name=lab", "--data-dir="+at("etcd"), "--logger=zap", "--log-level=error",
		"--listen-client-urls="+url(store), "--advertise-client-urls="+url(store), "--listen-peer-urls="+url(peer),
		"--initial-advertise-peer-urls="+url(peer), "--initial-cluster=lab="+url(peer), "--unsafe-no-fsync",
		"--cert-file="+cert, "--key-file="+key, "--client-cert-auth", "--trusted-ca-file="+s.CAFile,
		"--peer-cert-file="+cert, "--peer-key-file="+key, "--peer-client-cert-auth", "--peer-trusted-ca-file="+s.CAFile)
	s.part("apiserver", askKube(s, api, "/readyz"), found["kube-apiserver"], "--bind-address=127.0.0.1", "--secure-port="+api.String(),
		"--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none", // there is no Service that anyone could reach
		"--etcd-servers="+url(store), "--etcd-cafile="+s.CAFile, "--etcd-certfile="+cert, "--etcd-keyfile="+key,
		"--tls-cert-file="+cert, "--tls-private-key-file="+key, "--client-ca-file="+s.CAFile,
		"--kubelet-certificate-authority="+s.CAFile, "--kubelet-client-certificate="+at("apiserver.pem"),
		"--kubelet-client-key="+at("apiserver.key"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+at("service-accounts.pem"),
		"--service-account-signing-key-file="+at("service-accounts.key"), "--service-cluster-ip-range=198.18.0.0/24",
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--cert-dir="+at("run/apiserver"))
	s.part("controller-manager", askListener(controllers.Address()), found["kube-controller-manager"], "--bind-address=127.0.0.1",
		"--secure-port="+controllers.String(), "--tls-cert-file="+cert, "--tls-private-key-file="+key,
		"--kubeconfig="+at("controller-manager.conf"),
		"--service-account-private-key-file="+at("service-accounts.key"), "--root-ca-file="+s.CAFile, "--leader-elect=false",
		"--authentication-skip-lookup", "--use-service-account-credentials")
	s.part("scheduler", askListener(scheduler.Address()), found["kube-scheduler"], "--bind-address=127.0.0.1",
		"--secure-port="+scheduler.String(), "--tls-cert-file="+cert, "--tls-private-key-file="+key,
		"--kubeconfig="+at("scheduler.conf"), "--leader-elect=false", "--authentication-skip-lookup")
}

type nodeValues struct {
	Dir, Pause, CAFile, Cert, Key, Groups string
	Port                                  *port
	Pods                                  int
}

// node adds the node.
func (c KubernetesConfig) node(s *System, found map[string]string, cert, key string) {
	v := nodeValues{Dir: s.Dir, Pause: pauseImage, CAFile: s.CAFile, Cert: cert, Key: key, Groups: s.groups + "-node", Port: s.newPort(false),
		Pods: cmp.Or(c.Pods, labPods)}
	s.Slots = v.Pods
	s.Note = fmt.Sprintf("The cluster has one node, whose pods use the network of this machine, and the image %s.", KubernetesImage)
	program := c.Program
	if program == "" {
		self, err := os.Executable()
		s.fail(err)
		program = self
	}
	for name, i := range map[string]image{
		"pause.tar": {name: pauseImage, program: found["catatonit"], argv: []string{"/pause", "-P"}},
		"weir.tar":  {name: KubernetesImage, program: program, argv: []string{"/bin/weir"}},
	} {
		if s.err == nil {
			s.fail(i.write(filepath.Join(s.Dir, "node", name)))
		}
	}
	s.config("node/containerd.toml", containerdConf, v)
	s.config("node/kubelet.yaml", kubeletConf, v)
	// Without any, a node is not ready.
	s.config("node/cni/lab.conflist", `{"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "loopback"}]}`, nil)
	node := s.part("node", askFiles(filepath.Join(s.Dir, "node/run/kubelet")), "/bin/sh", "-c", nodeScript, "kubernetes", s.Dir, v.Groups,
		found["containerd"], found["ctr"], found["kubelet"], kubernetesNode)
	node.apart, node.user = true, -1
}

// kubeUser writes the certificate and the kubeconfig of a user.
func kubeUser(s *System, p kubernetesUser, api *port) {
	if s.err != nil {
		return
	}
	e := s.ca.entity(p.user, x509.ExtKeyUsageClientAuth)
	e.Subject = pkix.Name{CommonName: p.user, Organization: p.groups}
	i, err := s.ca.issue(e, s.ca.cert, s.ca.key)
	if err != nil {
		s.fail(err)
		return
	}
	cert, key := s.file(p.name+".pem", i.certPEM()), s.file(p.name+".key", i.keyPEM)
	named := func(kind string, of any) []any { return []any{map[string]any{"name": "lab", kind: of}} }
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "lab",
		"clusters": named("cluster", map[string]any{"server": "https://" + api.Address(), "certificate-authority": s.CAFile}),
		"users":    named("user", map[string]any{"client-certificate": cert, "client-key": key}),
		"contexts": named("context", map[string]any{"cluster": "lab", "user": "lab", "namespace": "default"}),
	})
	s.fail(err)
	s.file(p.name+".conf", text)
}

// kubeClient returns a client that is the administrator.
func kubeClient(s *System) (*http.Client, error) {
	authority, err := os.ReadFile(s.CAFile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(s.Dir, "admin.pem"), filepath.Join(s.Dir, "admin.key"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}},
		DialContext: (&net.Dialer{}).DialContext,
	}}, nil
}

// getKube gets an object of the API server.
func getKube(ctx context.Context, s *System, api *port, path string) ([]byte, error) {
	client, err := kubeClient(s)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+api.Address()+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, resp.Status, text)
	}
	return text, err
}

// askKube returns a question that succeeds when the API server responds to a request of a path.
func askKube(s *System, api *port, path string) question {
	return func(ctx context.Context) error {
		_, err := getKube(ctx, s, api, path)
		return err
	}
}

// kubernetesReady returns a question that succeeds when pods can be made and a node runs them.
func kubernetesReady(s *System, api *port) question {
	return func(ctx context.Context) error {
		if _, err := getKube(ctx, s, api, "/api/v1/namespaces/default/serviceaccounts/default"); err != nil {
			return err
		}
		text, err := getKube(ctx, s, api, "/api/v1/nodes/"+kubernetesNode)
		var node struct {
			Spec   struct{ Taints []struct{ Key string } }
			Status struct {
				Conditions []struct{ Type, Status, Message string }
			}
		}
		if err == nil {
			err = json.Unmarshal(text, &node)
		}
		if err != nil {
			return err
		}
		why := "it has not reported"
		for _, c := range node.Status.Conditions {
			if c.Type == "Ready" {
				if c.Status == "True" && len(node.Spec.Taints) == 0 {
					return nil
				}
				why = strings.TrimSpace(c.Status + " " + c.Message)
			}
		}
		return fmt.Errorf("the node is not ready: %s", why)
	}
}
