package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/transfer"
	"weir/transfer/client"
)

// openRequests stands, among statuses, for all of requests that have not ended.
const openRequests = "open"

// offered asks the coordinator for what a user may type. One that does not answer
// soon offers nothing.
func offered(c *cobra.Command, query func(context.Context, *client.Client) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	text := func(name string) string {
		if f := c.Flags().Lookup(name); f != nil {
			return f.Value.String()
		}
		return ""
	}
	f := clientFlags{address: text("coordinator"), tokenFile: text("token-file"), ca: text("coordinator-ca"), cert: text("client-cert"), key: text("client-key")}
	ctx, cancel := context.WithTimeout(c.Context(), 2*time.Second)
	defer cancel()
	var all []string
	_ = f.call(func(co *client.Client) (err error) { // what it did not tell is not offered
		all, err = query(ctx, co)
		return err
	})
	return all, cobra.ShellCompDirectiveNoFileComp
}

// completeSites offers the names of sites.
func completeSites(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndexByte(typed, ',')+1] // of a list
	return offered(c, func(ctx context.Context, co *client.Client) ([]string, error) {
		sites, err := co.Sites(ctx)
		var names []string
		for _, s := range sites {
			names = append(names, before+s.Name+"\t"+string(s.Kind)+" "+line(s.URL))
		}
		return names, err
	})
}

// completeOneSite offers the names of sites for the first argument.
func completeOneSite(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeSites(c, args, typed)
}

// completeDatasets offers the names of datasets.
func completeDatasets(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return offered(c, func(ctx context.Context, co *client.Client) ([]string, error) {
		all, err := co.Datasets(ctx, typed[:max(len(typed)-1, 0)], 1000) // names begin after what is shorter
		var names []string
		for _, one := range all {
			if strings.HasPrefix(one.Name, typed) {
				names = append(names, fmt.Sprintf("%s\t%d files", one.Name, one.Files))
			}
		}
		return names, err
	})
}

// completeRequests offers the numbers of requests of a status, of all that have
// not ended, or ("") all.
func completeRequests(status string) completer {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		want := transfer.Filter{Limit: 100, Open: status == openRequests}
		if !want.Open {
			want.Status = transfer.Status(status)
		}
		return offered(c, func(ctx context.Context, co *client.Client) ([]string, error) {
			all, err := co.Requests(ctx, want)
			var ids []string
			for _, r := range all {
				if id := strconv.FormatInt(r.ID, 10); !slices.Contains(args, id) {
					ids = append(ids, fmt.Sprintf("%s\t%s to %s: %s", id, line(r.Dataset), line(r.To), r.Status))
				}
			}
			return ids, err
		})
	}
}

func completeModes() completer {
	return completeWords(false, string(transfer.Pull), string(transfer.Push), string(transfer.Third))
}
