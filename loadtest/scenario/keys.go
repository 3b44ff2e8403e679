package scenario

import (
	"slices"

	"weir/internal/content"
	"weir/loadtest/workload"
)

// A key is one line of the format's reference.
type key struct {
	path, about string
}

// keys returns what each key of the format is for, in the order of the
// reference. The schema and docs/scenario.md follow it.
func keys() []key {
	return slices.Concat(firstKeys(), authKeys(), fileKeys(), workKeys(), loadKeys(), populationKeys(), linkKeys(), onKeys(), endKeys(),
		campaignKeys())
}

func firstKeys() []key {
	return []key{
		{"name", "Name of the scenario and its run directory: letters, digits, dots, _ and -."},
		{"target", "URL of the service under test; built-in: weir's own server. A list: equal endpoints of one service, used in turn."},
		{"server", "What weir's own server is like, with target: built-in."},
		{"server.cpu_per_page", "CPU time that each page costs: workload.job.page, or what a request reads."},
		{"server.threads", "Threads that serve pages, one page at a time each. 0: 1."},
		{"server.cpu", "Numbers of the processors that the server runs on, as in [1]. Default: all."},
		{"client", "External program as client: xrdcp, gfal-copy, curl, globus-url-copy, or a command. Default: weir's own client."},
		{"client.command", "Program and arguments, with placeholders such as {url}."},
		{"variables", "Names and values for ${NAME}. A name without a value (null) may come from the environment."},
	}
}

func authKeys() []key {
	return []key{
		{"auth", "How clients prove who they are. Secrets are named, never written here."},
		{"auth.method", "Way to authenticate."},
		{"auth.user", "Name of the user, the Kerberos principal of a keytab, or the access key of S3."},
		{"auth.password_file", "File that holds the password, or the secret key of S3."},
		{"auth.password_variable", "Environment variable that holds the password, or the secret key of S3."},
		{"auth.token_file", "File that holds the bearer token."},
		{"auth.token_variable", "Environment variable that holds the bearer token."},
		{"auth.cert_file", "Client certificate, PEM."},
		{"auth.key_file", "Key of the client certificate, PEM."},
		{"auth.proxy_file", "Proxy certificate with its key, PEM."},
		{"auth.keytab_file", "Kerberos keys of auth.user, a principal such as weir@EXAMPLE.ORG: weir fetches its own tickets."},
		{"auth.ticket_file", "Kerberos ticket cache, as kinit leaves it. Without it and a keytab: the user's own."},
		{"auth.krb5_file", "Kerberos configuration. Left out: KRB5_CONFIG, or /etc/krb5.conf."},
		{"auth.ca_file", "Certificate authorities to trust, PEM."},
		{"auth.ca_dir", "Folder of certificate authorities to trust."},
		{"auth.delegate", "Delegate a limited proxy to the server at login: with GridFTP, as gfal-copy and globus-url-copy do, and " +
			"to XRootD servers."},
		{"auth.data_channel", "How GridFTP secures data connections: not at all (clear), or with the delegated proxy, " +
			"which both sides show (authenticated), and also signed (safe) or encrypted (private) data."},
		{"auth.insecure", "Trust any server certificate, and let tokens and passwords go over plain http."},
	}
}

func fileKeys() []key {
	return []key{
		{"files", "Files to read: a list, a listing of the target, or files made for the run."},
		{"files.list", "File with one path per line, relative to the target, and optionally its size."},
		{"files.listing", "List the target. A target that is a file is the only one."},
		{"files.include", "Patterns of the names to use, as in ['*.root']: of list and listing. Default: all."},
		{"files.exclude", "Patterns of the names to leave out."},
		{"files.sample", "Number of files to use of those that match, drawn at random by seed; 0: all."},
		{"files.make", "Files that the run creates before it starts and removes after it."},
		{"files.make.count", "Number of files."},
		{"files.make.size", "File size: fixed, uniform or by weights."},
		{"files.make.keep", "Keep the files for the next run."},
	}
}

func workKeys() []key {
	return []key{
		{"workload", "What each virtual client does."},
		{"workload.kind", "Kind of work."},
		{"workload.mix", "Operations and their weights, for kinds mix and metadata."},
		{"workload.session", "Connection and login: kept between operations, fresh for each, or shared by all clients."},
		{"workload.tls_resumption", "TLS sessions that new connections resume by their tickets: none, those of the same client, or shared by " +
			"all clients. Left out: none, as curl, gfal-copy and xrdcp do, which are processes of their own."},
		{"workload.pick", "Choice of the next file."},
		{"workload.skew", "Exponent of pick: zipf, above 1."},
		{"workload.think", "Pause after each task: fixed, uniform or exponential."},
		{"workload.chunk", "Bytes per request; 0: chosen by the driver."},
		{"workload.in_flight", "Concurrent requests of a client, with ftp:// the data connections of a read; 0: chosen by the driver."},
		{"workload.sync", "Flush each written file to stable storage before it is closed (kXR_sync of root://, fsync of file://)."},
		{"workload.plain", "Read and write without the page checksums of root://: kXR_read and kXR_write, not kXR_pgread and kXR_pgwrite."},
		{"workload.keep_open", "Keep a file open for the client's next read of it, where the protocol opens files."},
		{"workload.part", "Read parts of files."},
		{"workload.part.size", "Bytes per part."},
		{"workload.part.count", "Parts per operation."},
		{"workload.part.order", "Position of the parts in the file."},
		{"workload.job", "Work of a job of kind job: it reads events of a file and computes on each."},
		{"workload.job.access", "Read events from the service, or from a copy of the file on a scratch disk."},
		{"workload.job.events", "Events per job."},
		{"workload.job.event_size", "Bytes per event."},
		{"workload.job.page", "Bytes per request, without vector and read_ahead."},
		{"workload.job.skim", "Share of the events to read, drawn at random."},
		{"workload.job.slim", "Share of each of these events to read: whole pages, spread evenly."},
		{"workload.job.vector", "Pages per request, wherever they are (vector reads)."},
		{"workload.job.read_ahead", "Bytes to request while the job computes on the previous ones; 0: off."},
		{"workload.job.compute", "Computing time per event: fixed, uniform or exponential."},
		{"workload.job.burn", "Keep a core busy while computing; otherwise sleep, so that one machine represents many."},
		{"workload.job.scratch", "Folder for the copies of staged jobs, on the machine of the job. Default: the batch system's for the job, " +
			"or the system's temporary folder."},
		{"workload.job.scratch_quota", "Bytes that the copies of all staged jobs on one machine may take at once; 0: as many as the disk has."},
		{"workload.job.copy_timeout", "Time limit of the copy of a staged job; workload.timeout limits every other request."},
		{"workload.job.output_size", "Bytes that a job writes to the target, in all of its output files; 0: no output."},
		{"workload.job.output_share", "Output of a job as a share of the bytes that it reads, instead of output_size."},
		{"workload.job.output_files", "Output files of a job, evenly over its events, the last at its end. Default: 1."},
		{"workload.size", "Size of written files: fixed, uniform or by weights."},
		{"workload.keep", "Keep written files after the run."},
		{"workload.verify", "Share of operations whose payload is verified with a checksum."},
		{"workload.checksum", "Checksum algorithm; with auth.method: s3 the default is md5."},
		{"workload.timeout", "Time limit of an operation; default of kind command-job: 1h."},
		{"workload.retries", "Retries of a failed operation; 0: off."},
	}
}

func populationKeys() []key {
	return []key{
		{"populations", "Groups of virtual clients with their own workloads, at the same time."},
		{"populations.[].name", "Name of the population."},
		{"populations.[].clients", "Virtual clients: of each step, or one number for all steps."},
		{"populations.[].workload", "What its clients do; missing keys are those of workload."},
	}
}

func loadKeys() []key {
	return []key{
		{"load", "Load of each step, and its duration."},
		{"load.clients", "Closed load: virtual clients of each step."},
		{"load.rate", "Open load: arrivals per second of each step, whether or not the service keeps up."},
		{"load.arrivals", "Open load: evenly spaced, or a Poisson process."},
		{"load.max_clients", "Open load: limit of busy virtual clients."},
		{"load.jobs", "Jobs (tasks) per client; the step ends with the last, or after its measurement time. 0: no limit."},
		{"load.ramp", "Time over which the clients of a step are started or stopped."},
		{"load.warmup", "Time at full load before the measurement."},
		{"load.duration", "Time at full load that is measured."},
		{"load.cooldown", "Time without clients between two steps. 0: steps follow each other."},
		{"load.graceful_stop", "Time limit of the last operations after the last step, and before each cool-down."},
		{"load.retry_after", "Whether clients pause as long as an answer 429 or 503 asks for (Retry-After), at most until the end of the step."},
		{"load.error_pause", "Longest pause of a client after failures: 1 ms after three failed tasks in a row, doubled by each further one. " +
			"0: no pause. Closed load only."},
	}
}

func linkKeys() []key {
	return []key{
		{"link", "Emulated link between the clients and the service: its keys, or names of several links and their " +
			"keys. See links.md."},
		{"link.rate", "Bitrate both ways, counted in IP packets. Default: no limit."},
		{"link.up", "Bitrate from the clients to the service, if different."},
		{"link.rtt", "Added round trip time, half of it each way."},
		{"link.jitter", "Variation of the one-way delay around its mean: at most half of rtt."},
		{"link.loss", "Share of packets lost each way."},
		{"link.queue", "Longest wait of a packet before it is dropped. 0: the largest of rtt, 50 ms and ten packets' time."},
		{"link.mtu", "Largest IP packet. 0: 1500B."},
		{"link.congestion", "TCP congestion control at both ends, such as cubic. Default: the machine's."},
		{"link.share", "Relative part of the clients. 0: 1."},
		{"link.trunk", "Name of another link, a line that this one shares with others on the way to the service."},
		{"link.outages", "Times at which the link is cut."},
		{"link.outages.[].after", "Start, since the load began."},
		{"link.outages.[].for", "Duration."},
	}
}

func onKeys() []key {
	return []key{
		{"on", "Machines of the clients, if not this one. See machines.md."},
		{"on.batch", "How workers are started: by a batch system, ssh, or local: processes of this machine."},
		{"on.workers", "Number of workers; each has a share of each step's clients."},
		{"on.job_per_client", "Each client is a job of the batch system, active once it has a slot, for the measurement time."},
		{"on.hosts", "Machines to start workers on by ssh, in turn."},
		{"on.address", "Name or address, with or without port, at which workers reach this machine. Default: detected."},
		{"on.submit", "Lines of the submit description (HTCondor), #SBATCH options (Slurm), fields of the pod (Kubernetes) or ssh options."},
		{"on.wait", "Longest wait for workers before the first step begins without the missing ones."},
		{"on.kubernetes", "How the pods of batch: kubernetes are made."},
		{"on.kubernetes.image", "Image of the workers: the same version of weir, as in registry.example.org/weir:1.2.3."},
		{"on.kubernetes.context", "Context of the kubeconfig. Default: its current context."},
		{"on.kubernetes.namespace", "Namespace. Default: that of the context."},
		{"on.kubernetes.node_selector", "Labels of the nodes, as in [disktype=nvme]."},
		{"on.kubernetes.requests", "Resources that each pod requests, as in [cpu=4, memory=2Gi]."},
		{"on.kubernetes.limits", "Limits of its resources, as in [memory=2Gi]."},
		{"on.kubernetes.tolerations", "Taints of nodes that it tolerates, as in ['dedicated=load:NoSchedule']."},
		{"on.kubernetes.service_account", "Service account of the pods."},
		{"on.kubernetes.deadline", "Longest time of all workers, after which Kubernetes ends them. Default: 1d."},
	}
}

func endKeys() []key {
	return []key{
		{"stop", "Conditions that end the run before the last step."},
		{"stop.time", "Time."},
		{"stop.count", "Number of operations."},
		{"stop.bytes", "Payload."},
		{"stop.error_ratio", "Share of operations that failed, or had a wrong payload, in the last ten seconds."},
		{"balancer", "What distributes the clients over several servers; its sessions with each are read every second."},
		{"balancer.haproxy", "HAProxy's statistics: path or HOST:PORT of its socket, or URL of its page."},
		{"balancer.ipvs", "IPVS (LVS): local for this machine, or the URL of the balancing machine's Prometheus page (node_exporter)."},
		{"balancer.service", "One of several services: HAProxy's backend, or ADDRESS:PORT of IPVS' virtual service."},
		{"hosts", "Machines to monitor."},
		{"hosts.[].name", "Name of the host."},
		{"hosts.[].role", "Role of the host in the test."},
		{"hosts.[].node_exporter", "URL of its Prometheus page. Default: this machine's /proc."},
		{"hosts.[].xrootd_report", "UDP port of this machine, as in :9931, for statistics of XRootD servers (xrd.report HOST:9931 " +
			"every 1s all sync)."},
		{"hosts.[].processes", "Names of programs whose CPU and memory are monitored."},
		{"hosts.[].pids", "Process ids to monitor."},
		{"hosts.[].groups", "Process groups to monitor."},
		{"hosts.[].address", "The host is a backend, one of several servers that share the load: names or addresses, with or without port, " +
			"of its data. Default: its name."},
		{"hosts.[].interface", "The host is a backend with all traffic of this interface, of node_exporter's page or of this machine."},
		{"hosts.[].transfer_log", "The host is a backend whose GridFTP server logs transfers to this local file " +
			"(globus-gridftp-server -log-transfer)."},
		{"thresholds", "Requirements, as in throughput > 8 Gbit/s at 2000 clients. Exit code 3 if one is not met; " +
			"with or stop at its end it ends the run."},
		{"boundaries", "Conditions whose range of loads is sought, as in latency_mean < 10 x single. No effect on the exit code."},
		{"seed", "Start of all random choices. Equal seeds make equal runs."},
	}
}

func campaignKeys() []key {
	return []key{
		{"repeat", "Number of blocks: repetitions of every combination."},
		{"matrix", "Keys and their values: a run for each combination, as in {workload.session: [kept, fresh]}."},
	}
}

// words returns the values that a key takes if it takes only some, by its
// path; [] represents any number in a list.
func words() map[string][]string {
	return map[string][]string{
		"client":                  {"xrdcp", "gfal-copy", "curl", "globus-url-copy"},
		"auth.data_channel":       {"clear", "authenticated", "safe", "private"},
		"auth.method":             {"none", "unix", "krb5", "x509", "token", "basic", "s3"},
		"workload.kind":           workload.Kinds(),
		"workload.job.access":     {"direct", "staged"},
		"workload.session":        {"kept", "fresh", "shared"},
		"workload.tls_resumption": {"none", "client", "shared"},
		"workload.pick":           {"random", "sequential", "zipf"},
		"workload.part.order":     {"random", "sequential"},
		"workload.checksum":       content.Algorithms(),
		"load.arrivals":           {"constant", "poisson"},
		"load.retry_after":        {obeyRetryAfter, IgnoreRetryAfter},
		"on.batch":                Batches(),
		"hosts.[].role":           {"client", "server", "both", "other"},
	}
}
