package workload

import (
	"math/rand/v2"
	"time"

	"weir/internal/content"
	"weir/storage"
)

// output describes the files that a job writes to the target.
type output struct {
	size  int64   // bytes of all its files, unless share is given
	share float64 // of the bytes that it reads
	files int     // 0: no output
}

func (j *Job) output() output {
	o := output{int64(j.OutputSize), float64(j.OutputShare), max(j.OutputFiles, 1)}
	if o.size <= 0 && o.share <= 0 {
		return output{}
	}
	return o
}

// outputs reports whether jobs of w write files.
func outputs(w Work) bool { return w.Kind == JobWork && w.Job != nil && w.Job.output().files > 0 }

// MaxOutputFiles is the number of files that a job can write.
const MaxOutputFiles = 10_000

// output checks the keys of the output of jobs.
func (c *checker) output(j *Job) {
	c.refuse(j.OutputSize < 0 || j.OutputSize > maxEvent, "job.output_size", "%v is out of range; use up to %v, or 0 for no output",
		j.OutputSize, maxEvent)
	c.refuse(!(j.OutputShare >= 0 && j.OutputShare <= 1000), "job.output_share",
		"%v is out of range; use a share of what the job reads, such as 10%%, or 0", float64(j.OutputShare))
	c.refuse(j.OutputSize > 0 && j.OutputShare > 0, "job.output_share", "cannot be combined with job.output_size; omit one of them")
	c.refuse(j.OutputFiles < 0 || j.OutputFiles > MaxOutputFiles, "job.output_files", "%d is out of range; use 1 to %d", j.OutputFiles,
		MaxOutputFiles)
	c.refuse(j.OutputFiles > 0 && j.output().files == 0, "job.output_files",
		"the job writes nothing; give job.output_size or job.output_share as well, or omit it")
	if j.Events > 0 && j.OutputFiles > 0 {
		c.refuse(int64(j.OutputFiles) > j.Reads(), "job.output_files", "%d files are more than the %d events that the job reads; use fewer",
			j.OutputFiles, j.Reads())
	}
}

// Output returns the number of files that a job writes after it has read so many bytes, and the
// size of all these files together.
func (j *Job) Output(read int64) (files int, bytes int64) {
	o := j.output()
	if o.share > 0 {
		o.size = int64(o.share * float64(read))
	}
	if o.files == 0 {
		return 0, 0
	}
	return o.files, max(o.size, int64(o.files))
}

// OutputDue reports whether the job writes a file now that it has made the requests so far; ended
// means after its last event. Each call that returns true is followed by a call of Output.
func (g *Reading) OutputDue(ended bool) bool {
	n := g.job.output().files
	if n == 0 || g.wrote == n {
		return false
	}
	return ended || g.wrote < n-1 && g.seen*int64(n) >= g.job.Reads()*int64(g.wrote+1)
}

// Output fills op with the write of the job's next file. verify reports whether its payload is to be checked.
func (g *Reading) Output(r *rand.Rand, op *storage.Op) (verify bool) {
	s := g.stream
	read := g.job.Takes().Bytes
	if g.wrote++; g.wrote == g.job.output().files {
		read = g.used // the number of bytes is known now
	}
	files, total := g.job.Output(read)
	size := max(total*int64(g.wrote)/int64(files)-g.written, 1)
	g.written += size
	path := s.names.file(s.names.next())
	*op = storage.Op{Kind: storage.Write, Path: path, Size: size, Seed: content.Seed(r.Uint64(), path), Chunk: s.chunk, Plain: s.plain,
		Sync: s.sync, Timeout: s.timeout}
	if g.job.Access == Staged {
		op.Timeout = time.Duration(g.job.Copy)
	}
	return s.verified(r)
}
