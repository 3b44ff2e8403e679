package scenario

import (
	"slices"

	"weir/internal/content"
	"weir/workload"
)

// A key is one line of the format's reference.
type key struct {
	path, about string
}

// keys returns what each key of the format is for, in the order of the
// reference. The schema and docs/scenario.md follow it.
func keys() []key {
	return slices.Concat(firstKeys(), authKeys(), fileKeys(), workKeys(), loadKeys(), populationKeys(), linkKeys(), onKeys(), endKeys(), campaignKeys())
}

func firstKeys() []key {
	return []key{
		{"name", "Name of the scenario, used for the run directory: letters, digits, dots, _ and -."},
		{"target", "URL of the service under test, or built-in for weir's own server. A list of URLs: equal doors of one service, which the clients use in turn."},
		{"client", "External program that does the work of a client: xrdcp, gfal-copy, curl or globus-url-copy, or a command of your own. Left out, weir speaks the target's protocol itself."},
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
		{"auth.insecure", "Trust any server certificate, and let tokens and passwords go over plain http."},
	}
}

func fileKeys() []key {
	return []key{
		{"files", "Which files are read: a list, a listing of the target, or files made for the run."},
		{"files.list", "File with one path a line, relative to the target, and optionally its size."},
		{"files.listing", "Ask the target which files it has."},
		{"files.make", "Files that the run makes before it starts and removes after it."},
		{"files.make.count", "How many files are made."},
		{"files.make.size", "Size of a made file: fixed, uniform or by weights."},
		{"files.make.keep", "Leave the made files for the next run."},
	}
}

func workKeys() []key {
	return []key{
		{"workload", "What each virtual client does."},
		{"workload.kind", "Kind of work."},
		{"workload.mix", "Operations and how often each is drawn, for kind mix and metadata."},
		{"workload.session", "Keep the connection and login from operation to operation, make a fresh one for each, or share one among all clients."},
		{"workload.pick", "How the next file is picked."},
		{"workload.skew", "Exponent of pick: zipf, above 1."},
		{"workload.think", "Pause after each task: fixed, uniform or exponential."},
		{"workload.chunk", "Bytes asked for at once; 0 lets the driver choose."},
		{"workload.in_flight", "Requests of one client under way at once, with ftp:// the data connections of a read; 0 lets the driver choose."},
		{"workload.sync", "Have each written file put on stable storage before it is closed (kXR_sync of root://, fsync of file://)."},
		{"workload.plain", "Read and write without the page checksums that root:// has: kXR_read and kXR_write instead of kXR_pgread and kXR_pgwrite."},
		{"workload.keep_open", "Leave a file that was read open for the client's next read of it, where the protocol opens files."},
		{"workload.part", "Read parts of files instead of whole files."},
		{"workload.part.size", "Bytes of one part."},
		{"workload.part.count", "Parts asked for in one operation."},
		{"workload.part.order", "Where the parts lie in the file."},
		{"workload.job", "What a job of kind job does: it goes through events of a file and computes on each that it reads."},
		{"workload.job.access", "How a job gets at its events: from the service, or from a copy of the whole file on a scratch disk, which it makes first and removes at its end."},
		{"workload.job.events", "Events that a job goes through."},
		{"workload.job.event_size", "Bytes of one event."},
		{"workload.job.page", "Bytes of one request, without vector and read_ahead."},
		{"workload.job.skim", "Share of the events that is read, drawn at random."},
		{"workload.job.slim", "Share of each of these events that is read: whole pages, spread evenly."},
		{"workload.job.vector", "Pages asked for in one request, wherever they lie (vector reads)."},
		{"workload.job.read_ahead", "Bytes of one request, several pages at once, which is under way while the job computes on the one before; 0 is off: read, compute, read."},
		{"workload.job.compute", "Time for which a job computes on each event that it reads: fixed, uniform or exponential."},
		{"workload.job.burn", "Computing keeps a core of this machine busy; otherwise it is slept, so that one machine can stand for many."},
		{"workload.job.scratch", "Folder for the copies of staged jobs. Left out: the system's folder for temporary files."},
		{"workload.job.copy_timeout", "Longest that the copy of a staged job may take; workload.timeout is that of every other request."},
		{"workload.size", "Size of a file to write: fixed, uniform or by weights."},
		{"workload.keep", "Leave written files where they are instead of removing them after the run."},
		{"workload.verify", "Share of operations whose payload is checked against a checksum."},
		{"workload.checksum", "Algorithm used to verify."},
		{"workload.timeout", "Longest that one operation may take; kind command-job: 1h unless it is given."},
		{"workload.retries", "How often a failed operation is tried again; 0 is off."},
	}
}

func populationKeys() []key {
	return []key{
		{"populations", "Groups of virtual clients with a workload each, which work at the same time."},
		{"populations.[].name", "Name of the population."},
		{"populations.[].clients", "Its virtual clients: of each step, or one number for all steps."},
		{"populations.[].workload", "What each of its clients does; keys that are left out are those of workload."},
	}
}

func loadKeys() []key {
	return []key{
		{"load", "How much is asked for, step by step, and for how long."},
		{"load.clients", "Closed load: virtual clients of each step."},
		{"load.rate", "Open load: arrivals per second of each step, whether or not the service keeps up."},
		{"load.arrivals", "Open load: evenly spaced, or at random as a Poisson process."},
		{"load.max_clients", "Open load: most virtual clients that may be busy at once."},
		{"load.jobs", "Jobs (tasks) that each client does before it leaves. The step ends with the last of them, or when its measurement time is over. 0: clients go on for the measurement time."},
		{"load.ramp", "Time over which a step's clients are started or stopped."},
		{"load.warmup", "Time at full load that is not counted."},
		{"load.duration", "Time at full load that is counted."},
		{"load.cooldown", "Rest of the service between two steps, in which no client is there. 0: steps follow each other."},
		{"load.graceful_stop", "Longest that the last operations may take after the last step, and before each rest."},
		{"load.error_pause", "Longest pause of a client whose tasks go on failing. After three failed tasks in a row it pauses 1 ms, then twice as long after each further failure, up to this. 0: no pause. Open load has none."},
	}
}

func linkKeys() []key {
	return []key{
		{"link", "Emulated link between the clients and a service on this machine: the keys of one, or names of several and the keys of each. See links.md."},
		{"link.rate", "How fast the link is, both ways, counted in IP packets. Left out: as fast as can be emulated."},
		{"link.up", "The rate from the clients to the service, where that differs."},
		{"link.rtt", "Round trip time that the link adds, half of it each way."},
		{"link.jitter", "How far the delay of one way swings around its mean: at most half of rtt."},
		{"link.loss", "Packets lost each way."},
		{"link.queue", "How long a packet may wait for the wire before it is dropped. 0: the larger of rtt, 50 ms and ten packets' time."},
		{"link.mtu", "The largest IP packet. 0: 1500B."},
		{"link.congestion", "Congestion control of TCP at both ends, such as cubic. Left out: what the machine uses."},
		{"link.share", "The link's part of the clients, in proportion to those of the other links. 0: 1."},
		{"link.outages", "When the link is cut, one time after the other."},
		{"link.outages.[].after", "When it is cut, counted from when the load begins."},
		{"link.outages.[].for", "How long it stays cut."},
	}
}

func onKeys() []key {
	return []key{
		{"on", "Machines that the clients are on, if not this one. See machines.md."},
		{"on.batch", "What starts the workers: a batch system, ssh, or local: processes of this machine."},
		{"on.workers", "How many workers are started; each has a share of each step's clients."},
		{"on.job_per_client", "Each client is a job of the batch system. Clients become active as slots come free, and each works for the measurement time."},
		{"on.hosts", "Machines that ssh logs in to, one after the other, as often as there are workers."},
		{"on.address", "Name or address, with a port or without, at which workers reach this machine. Left out: found out."},
		{"on.submit", "Lines for the submit description (HTCondor), #SBATCH options (Slurm) or ssh options, in their own words."},
		{"on.wait", "Longest that the first step waits for all workers; then it begins with those that are there."},
		{"on.apart", "Workers cannot reach this machine: each measures for itself, and what they bring back is merged."},
	}
}

func endKeys() []key {
	return []key{
		{"stop", "When to end before the last step."},
		{"stop.time", "End after this time."},
		{"stop.count", "End after so many operations."},
		{"stop.bytes", "End after so many bytes of payload."},
		{"stop.error_ratio", "End when this share of the operations of the last ten seconds failed."},
		{"balancer", "What spreads the clients over several servers, asked each second about its sessions with each of them."},
		{"balancer.haproxy", "HAProxy's statistics: the path or HOST:PORT of its socket, or the URL of its statistics page."},
		{"balancer.ipvs", "IPVS (LVS): local for this machine's own, or the URL of the Prometheus page (node_exporter) of the machine that balances."},
		{"balancer.service", "Which service, if it balances several: the name of HAProxy's backend, or ADDRESS:PORT of IPVS' virtual service."},
		{"hosts", "Machines that are watched while the run goes on."},
		{"hosts.[].name", "Name of the host."},
		{"hosts.[].role", "What the host does in this test."},
		{"hosts.[].node_exporter", "URL of its Prometheus page. Left out, this machine's /proc is read."},
		{"hosts.[].xrootd_report", "UDP port of this machine, as in :9931, to which XRootD servers send their statistics (xrd.report HOST:9931 every 1s all sync)."},
		{"hosts.[].processes", "Names of the programs whose own CPU and memory are watched."},
		{"hosts.[].pids", "Numbers of processes to watch."},
		{"hosts.[].groups", "Process groups to watch."},
		{"hosts.[].address", "This host is a backend: a server of several that share the load. Names or addresses, with a port or without, at which clients get its data. Left out: its name."},
		{"hosts.[].interface", "This host is a backend, and all traffic of this interface is its: of node_exporter's page, or of this machine."},
		{"hosts.[].transfer_log", "This host is a backend, and its GridFTP server writes a line for each transfer to this file, which can be read here (globus-gridftp-server -log-transfer)."},
		{"thresholds", "What the result must meet, as in throughput > 8 Gbit/s at 2000 clients. One that is not met makes the exit code 3; one that ends in or stop ends the run at once."},
		{"boundaries", "Conditions whose range of loads is sought, as in latency_mean < 10 x single. They do not touch the exit code."},
		{"seed", "Start of all random choices. Equal seeds make equal runs."},
	}
}

func campaignKeys() []key {
	return []key{
		{"repeat", "How often each combination is run: one block of runs after the other."},
		{"matrix", "Keys and the values that they take in turn: a run for each combination, as in {workload.session: [kept, fresh]}."},
	}
}

// words returns the values that a key takes if it takes only some, by its
// path; [] stands for any number in a list.
func words() map[string][]string {
	return map[string][]string{
		"client":              {"xrdcp", "gfal-copy", "curl", "globus-url-copy"},
		"auth.method":         {"none", "unix", "krb5", "x509", "token", "basic", "s3"},
		"workload.kind":       workload.Kinds(),
		"workload.job.access": {"direct", "staged"},
		"workload.session":    {"kept", "fresh", "shared"},
		"workload.pick":       {"random", "sequential", "zipf"},
		"workload.part.order": {"random", "sequential"},
		"workload.checksum":   content.Algorithms(),
		"load.arrivals":       {"constant", "poisson"},
		"on.batch":            Batches(),
		"hosts.[].role":       {"client", "server", "both", "other"},
	}
}
