package fts

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/transfer"
	"weir/transfer/queue"
)

// ftsFields returns the fields of FTS3's messages: src/activemq/msg-ifce.cpp of FTS 3.14, and the
// additions of BrokerConnection.cpp.
func ftsFields(k Kind) []string {
	return strings.Fields(map[Kind]string{
		StartMessage: `dest_srm_v dst_hostname dst_site_name dst_url endpnt file_id file_metadata is_archiving job_id job_metadata
			src_hostname src_site_name src_srm_v src_url srm_space_token_dst srm_space_token_src t_channel timestamp transfer_id user_dn vo`,
		CompleteMessage: `activity auth_method block_size buf_size channel_type chk_timeout cleanup_code dest_srm_v dst_hostname dst_protocol
			dst_se dst_site_name dst_transfer_protocol dst_url endpnt eviction_code f_size file_id file_metadata file_size final_destination
			ipver is_archiving is_recoverable job_id job_m_replica job_metadata job_multihop job_state nstreams operation_time
			overwrite_on_disk_deletion_code overwrite_on_disk_flag protocol protocol_translation retry retry_max scitag src_hostname
			src_protocol src_se src_site_name src_srm_v src_transfer_protocol src_url srm_finalization_time srm_overhead_percentage
			srm_overhead_time srm_preparation_time srm_space_token_dst srm_space_token_src t__error_message t_channel t_error_code
			t_failure_phase t_final_transfer_state t_final_transfer_state_flag t_timeout tcp_buf_size throughput time_srm_fin_end
			time_srm_fin_st time_srm_prep_end time_srm_prep_st timestamp_checksum_dest_ended timestamp_checksum_dest_st
			timestamp_checksum_dst_diff timestamp_checksum_src_diff timestamp_chk_src_ended timestamp_chk_src_st timestamp_tr_comp
			timestamp_tr_st tr_bt_transfered tr_error_category tr_error_scope tr_id tr_timestamp_complete tr_timestamp_start
			transfer_lasthop transfer_time transfer_type user_dn vo`,
		StateMessage: `archiving archiving_finished archiving_start dest_se dst_url endpnt file_id file_metadata file_state job_id
			job_metadata job_state reason retry_counter retry_max source_se src_url staging staging_finished staging_start submit_time
			timestamp user_dn user_filesize vo_name`,
	}[k])
}

// aChange returns a change of the only file of a job, as the queue returns it.
func aChange(state transfer.State, change func(*queue.FileChange, *Kept)) *queue.FileChange {
	made := time.Date(2026, 3, 1, 14, 30, 0, 0, time.UTC)
	c := &queue.FileChange{ID: 1, At: made.Add(10 * time.Second), Source: "A", Job: &queue.JobState{Job: queue.Job{ID: "the-job", By: "rucio",
		Made: made}}, File: &queue.JobFile{Share: "Users", Streams: 4, Timeout: time.Minute, Attempts: 1}}
	c.File.Item = transfer.Item{ID: 77, Size: 4000, State: state}
	c.File.Sources = []queue.PairSource{{Site: "A", Path: "f", URL: "https://a.example:1094/f"}}
	c.File.Params = `{"dest":"davs://b.example:1094/g","sources":["davs://a.example:1094/f","root://c.example//f"],"user_filesize":4000,` +
		`"file_metadata":{"request_id":"r1"}}`
	status := transfer.Running
	if state.Final() {
		status = transfer.Completed
	}
	c.Job.Parts = []queue.JobRequest{{Request: transfer.Request{Status: status, Count: transfer.Counts{Files: 1}}}}
	k := Kept{VO: "atlas", Type: "N", Retry: 3, Verify: "both", Metadata: json.RawMessage(`{"issuer":"rucio","multi_sources":false}`)}
	change(c, &k)
	text, _ := json.Marshal(k) // strings cannot fail
	c.Job.Params = string(text)
	return c
}

// attempted returns an attempt of two seconds.
func attempted(fault transfer.ErrorClass, reason string) *transfer.Attempt {
	a := &transfer.Attempt{Source: "A", Mode: transfer.Third}
	a.Fault, a.Reason, a.Moved = fault, reason, 4000
	a.Begin = time.Date(2026, 3, 1, 14, 30, 5, 0, time.UTC)
	a.End = a.Begin.Add(2 * time.Second)
	return a
}

// Each message has all fields of FTS3's message and no other field, with its values for each way in
// which an attempt or a file ends.
func TestMessages(t *testing.T) {
	t.Parallel()
	failed := func(fault transfer.ErrorClass, reason string) func(*queue.FileChange, *Kept) {
		return func(c *queue.FileChange, _ *Kept) {
			c.Ended, c.File.Fault, c.File.Reason = attempted(fault, reason), fault, reason
		}
	}
	ok := func(c *queue.FileChange, _ *Kept) { c.Ended = attempted("", "") }
	hops := func(number int) func(*queue.FileChange, *Kept) {
		return func(c *queue.FileChange, k *Kept) {
			k.Type, c.File.Number, c.Job.Parts[0].Count.Files = multihop, number, 2
			ok(c, k)
		}
	}
	const occupied = "DESTINATION OVERWRITE [17] Destination file exists and overwrite is not enabled: it has 12 bytes"
	for name, c := range map[string]struct {
		state  transfer.State
		change func(*queue.FileChange, *Kept)
		kinds  string
		want   string // of the last message
	}{
		"submitted": {transfer.Queued, func(*queue.FileChange, *Kept) {}, "state", `{"file_state":"SUBMITTED","job_state":"SUBMITTED",
			"vo_name":"atlas","source_se":"davs://a.example","dest_se":"davs://b.example","src_url":"davs://a.example:1094/f","submit_time":1772375400000,
			"timestamp":1772375410000,"retry_max":3,"user_filesize":4000,"file_metadata":{"request_id":"r1"},"user_dn":"",
			"endpnt":"weir.example.org","reason":"","staging":false,"staging_start":0}`},
		"staging": {transfer.Queued, func(c *queue.FileChange, _ *Kept) {
			c.File.Waits, c.File.Tape = queue.Stage, []queue.TapeFile{{Kind: queue.Stage, Began: c.At}}
		}, "state", `{"file_state":"STAGING","staging":true,"staging_start":1772375410000,"staging_finished":0,"archiving":false}`},
		"begins": {transfer.Leased, func(c *queue.FileChange, _ *Kept) { c.Began = true }, "state start", `{
			"transfer_id":"2026-03-01-1430__a.example__b.example__77__the-job","job_id":"the-job","file_id":77,"vo":"atlas",
			"timestamp":1772375410000,"t_channel":"a.example__b.example","src_url":"davs://a.example:1094/f","dst_url":"davs://b.example:1094/g",
			"src_hostname":"a.example","job_metadata":{"issuer":"rucio","multi_sources":false},"is_archiving":false}`},
		"done": {transfer.Done, ok, "state complete", `{"tr_id":"2026-03-01-1430__a.example__b.example__77__the-job",
			"t_final_transfer_state":"Ok","t_final_transfer_state_flag":1,"job_state":"UNKNOWN","t_error_code":0,"t__error_message":"",
			"tr_timestamp_start":1772375405000,"tr_timestamp_complete":1772375410000,"timestamp_tr_st":1772375405000,
			"timestamp_tr_comp":1772375407000,"transfer_time":2000,"operation_time":2000,"throughput":2000,"tr_bt_transfered":4000,"file_size":4000,
			"f_size":4000,"nstreams":4,"t_timeout":60,"activity":"Users","is_archiving":false,"job_m_replica":false,"job_multihop":false,
			"transfer_lasthop":false,"src_protocol":"davs","src_transfer_protocol":"https","protocol_translation":false,"protocol":"davs",
			"auth_method":"oauth2","channel_type":"urlcopy","ipver":"unknown","eviction_code":-1,"transfer_type":"","vo":"atlas",
			"endpnt":"weir.example.org","is_recoverable":false,"src_se":"davs://a.example","file_metadata":{"request_id":"r1"}}`},
		"it was there": {transfer.Skipped, func(c *queue.FileChange, k *Kept) {
			ok(c, k)
			c.Ended.Moved, c.Ended.Existed, c.File.Reason = 0, true, "it was there already"
		}, "state complete", `{"t_final_transfer_state":"Ok","tr_bt_transfered":0,"t__error_message":""}`},
		"streamed, by a certificate": {transfer.Done, func(c *queue.FileChange, k *Kept) {
			ok(c, k)
			c.Ended.Mode, k.User = transfer.Streamed, "/CN=rucio"
		}, "state complete", `{"transfer_type":"streamed","auth_method":"certificate","user_dn":""}`},
		"failed": {transfer.FileFailed, failed(transfer.SourceBad, "A: it's \"not\" thére\n"), "state complete", `{
			"t_final_transfer_state":"Error","t_final_transfer_state_flag":0,"job_state":"UNKNOWN","t_error_code":2,"tr_error_scope":"SOURCE",
			"tr_error_category":"NO_SUCH_FILE_OR_DIRECTORY","t_failure_phase":"TRANSFER_PREPARATION","is_recoverable":false,"retry":0,"retry_max":3,
			"t__error_message":"SOURCE [2] No such file or directory, or it is corrupt: A: its not th re ","throughput":-1}`},
		"occupied": {transfer.FileFailed, failed(transfer.Occupied, "it has 12 bytes"), "state complete", `{"t_error_code":17,
			"tr_error_scope":"DESTINATION","tr_error_category":"FILE_EXISTS","t__error_message":"` + occupied + `"}`},
		"tried again": {transfer.Queued, failed(transfer.Transient, "cut"), "state complete", `{"t_final_transfer_state":"Error",
			"job_state":"ACTIVE","is_recoverable":true,"t_failure_phase":"TRANSFER","tr_error_scope":"TRANSFER","t_error_code":70}`},
		"cancelled while it is copied": {transfer.FileCancelled, failed(transfer.RequestCancelled, "cancelled by rucio"), "state complete", `{
			"t_final_transfer_state":"Abort","t_final_transfer_state_flag":-1,"t_error_code":125,"tr_error_category":"OPERATION_CANCELED"}`},
		"cancelled in the queue": {transfer.FileCancelled, func(c *queue.FileChange, _ *Kept) {
			c.File.Reason, c.File.Fault = "its turn had not come; cancelled", ""
		}, "state complete", `{"t_final_transfer_state":"Abort","t_error_code":125,"tr_timestamp_start":1772375410000,"timestamp_tr_st":0,
			"operation_time":0,"srm_overhead_percentage":-1}`},
		"not tried": {transfer.FileFailed, func(c *queue.FileChange, _ *Kept) {
			c.File.Fault, c.File.Reason = transfer.Permanent, "STAGING [110] bring-online timeout has been exceeded"
		}, "state complete", `{"t_final_transfer_state":"Error","t_error_code":110,"tr_error_scope":"STAGING","tr_error_category":
			"CONNECTION_TIMED_OUT","t__error_message":"STAGING [110] bring-online timeout has been exceeded"}`},
		"archiving": {transfer.Queued, func(c *queue.FileChange, k *Kept) {
			ok(c, k)
			c.File.Waits, c.File.Terms.Archive = queue.Archive, time.Hour
		}, "state complete", `{"t_final_transfer_state":"Ok","is_archiving":true}`},
		"archived": {transfer.Done, func(c *queue.FileChange, _ *Kept) {
			c.File.Terms.Archive, c.File.Began = time.Hour, c.At.Add(-time.Second)
			c.File.Tape = []queue.TapeFile{{Kind: queue.Archive, Began: c.At, Ended: c.At}}
		}, "state complete", `{"t_final_transfer_state":"Ok","is_archiving":false,"tr_bt_transfered":0,"tr_timestamp_start":1772375409000}`},
		"first hop": {transfer.Done, hops(0), "state complete", `{"job_state":"ACTIVE","job_multihop":true,"transfer_lasthop":false}`},
		"last hop":  {transfer.Done, hops(1), "state complete", `{"job_state":"FINISHED","job_multihop":true,"transfer_lasthop":true}`},
		"hop failed": {transfer.FileFailed, func(c *queue.FileChange, k *Kept) {
			hops(0)(c, k)
			failed(transfer.Permanent, "no")(c, k)
		}, "state complete", `{"job_state":"FAILED","t_final_transfer_state":"Error","t_error_code":5,"tr_error_category":"INPUT/OUTPUT_ERROR"}`},
		"hop is tried again": {transfer.Queued, func(c *queue.FileChange, k *Kept) {
			hops(0)(c, k)
			failed(transfer.Transient, "cut")(c, k)
		}, "state", `{"file_state":"SUBMITTED","reason":"TRANSFER [70] Communication error on send: cut"}`},
		"hop not used": {transfer.FileCancelled, func(c *queue.FileChange, _ *Kept) {
			c.File.Fault, c.File.Reason = transfer.HopFailed, "the hop before it has failed"
		}, "state", `{"file_state":"NOT_USED"}`},
		"other source": {transfer.Done, func(c *queue.FileChange, k *Kept) {
			ok(c, k)
			c.File.Sources = append(c.File.Sources, queue.PairSource{Site: "C", Path: "f", URL: "root://c.example:1094//f"})
			c.Source, k.Type = "C", "R"
		}, "state complete", `{"src_url":"root://c.example//f","src_hostname":"c.example","job_m_replica":true,"job_state":"FINISHED",
			"src_transfer_protocol":"root","protocol_translation":true}`},
		"the job has ended since": {transfer.Leased, func(c *queue.FileChange, _ *Kept) {
			c.Job.Parts[0].Status, c.Job.Parts[0].Count.Done = transfer.Completed, 1
		}, "state", `{"file_state":"ACTIVE","job_state":"ACTIVE"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, err := Messages(aChange(c.state, c.change), MessageOptions{Endpoint: "weir.example.org"})
			require.NoError(t, err)
			var kinds []string
			var got map[string]any
			for _, m := range all {
				kinds, got = append(kinds, string(m.Kind)), nil
				if err := json.Unmarshal(m.Body, &got); err != nil || m.VO != "atlas" {
					t.Fatalf("%s: %v, %+v", m.Body, err, m)
				}
				if fields := slices.Sorted(maps.Keys(got)); !slices.Equal(fields, ftsFields(m.Kind)) {
					t.Errorf("%s has %q", m.Kind, fields)
				}
			}
			if strings.Join(kinds, " ") != c.kinds {
				t.Fatalf("%q", kinds)
			}
			var want map[string]any
			require.NoError(t, json.Unmarshal([]byte(c.want), &want))
			for field, value := range want {
				if fmt.Sprint(got[field]) != fmt.Sprint(value) {
					t.Errorf("%s is %v instead of %v", field, got[field], value)
				}
			}
		})
	}
}

// Messages contain users only if that is configured, and a change without a job has no message.
func TestMessagesOfUsers(t *testing.T) {
	t.Parallel()
	c := aChange(transfer.Queued, func(*queue.FileChange, *Kept) {})
	all, err := Messages(c, MessageOptions{Users: true})
	if err != nil || len(all) != 1 || !strings.Contains(string(all[0].Body), `"user_dn":"rucio"`) {
		t.Errorf("%s, %v", all, err)
	}
	if all, err := Messages(&queue.FileChange{}, MessageOptions{}); err != nil || len(all) != 0 {
		t.Errorf("%s, %v", all, err)
	}
}
