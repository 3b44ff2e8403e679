package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weir/internal/unit"
	"weir/loadtest/analysis/links"
)

// advice returns the next step after a data challenge in which this cause held links below their
// target.
func advice(c *links.Cause) string {
	switch c.Kind {
	case links.Source, links.Dest:
		return storageAdvice(c)
	case links.Line:
		return lineAdvice(c)
	case links.Service:
		return serviceAdvice(c)
	case links.Credentials:
		if c.Detail == links.Denied {
			return "Check the mapping of the identity and the permissions of the folder at the sites that refuse; then copy one file by hand."
		}
		if c.Detail == links.Issuer {
			return "Read the log and the load of the issuer at that time: the transfer service cannot be used without its tokens."
		}
		return "Compare the lifetime of tokens with the time that copies wait; renew earlier, and check that the issuer answers in time."
	case links.Injection:
		return injectionAdvice(c)
	}
	return "Monitor the machines of both sites (hosts in the plan), measure the line alone with iperf3, and repeat these links by themselves."
}

func storageAdvice(c *links.Cause) string {
	switch c.Detail {
	case links.Disk:
		return "Measure the disks alone with weir find at that site; spread the folder over more disk servers, or lower the rate of its links."
	case links.CPU:
		return "Find the process that uses the cores (TLS, checksums, gateways); add doors or cores, or offload checksums."
	case links.Interface:
		return "The interface carries its rate: add one, bond them, or spread the load over more doors."
	case links.Capacity:
		return "The targets add up to the stated capacity of the site: lower them, or state and test a higher capacity."
	case links.SiteLine:
		return "The line of the site carries its rate while its disks and cores are idle: raise it, or lower the targets of the site's links."
	case links.Refuses, links.Denied:
		return "Read the log of the site for its reason of refusal: limits of the door, authorization, or a draining server."
	case links.Fails:
		return "Read the log of the site at the time of the failures; the table of failed copies has their class."
	case links.Away:
		return "Ask the site for the reason of the outage; the time line shows when it was away."
	case links.Full:
		return "Free space at the site, or raise its quota; compare the space in the plan with that of the site."
	case links.Door:
		return "Raise the limit of copies of the door or the mover queue (dCache: movers; XRootD: http.tpc or xrootd.async limits), or add doors."
	case links.Login:
		return "Each copy costs time whatever its size: use larger files, reuse connections, and check logins and token validation."
	case links.Checksum:
		return "Verification takes long after the last byte: have the site compute checksums while it writes, or store them as attributes."
	}
	return "Have the site's machines monitored (node_exporter, XRootD reports) and repeat: disks, cores and interfaces are not distinguished."
}

func lineAdvice(c *links.Cause) string {
	switch c.Detail {
	case links.Trunk:
		return "These links share a line: add up their targets, ask the network provider for its rate, and raise it or lower the targets."
	case links.Own:
		return "Measure the line with iperf3 and perfSONAR in this direction: rate, loss, MTU; raise TCP buffers or streams on long lines."
	}
	return "Measure loss and rate between the sites with perfSONAR, and compare with the traffic that the network provider sees."
}

func serviceAdvice(c *links.Cause) string {
	switch c.Detail {
	case links.Queue:
		return "Copies wait at the service: raise its limits of active transfers (FTS: link and storage configuration)."
	case links.Starts:
		return "The service begins few copies per second: use larger files, add nodes of the service, or check its database."
	case links.Answers:
		return "Requests to the service fail or take long: read its log, check its database, and see what else uses it."
	}
	return "Read the log and the load of the transfer service at that time."
}

func injectionAdvice(c *links.Cause) string {
	switch c.Detail {
	case links.Copies:
		return "Raise in_flight of the link or of its sites in the plan if the sites agree."
	case links.SmallFiles:
		return "Use larger files, or raise in_flight: so few bytes in flight cannot fill the line."
	case links.LargeFiles:
		return "Use smaller files: one file is more than the target needs in a minute."
	case links.Ceiling:
		return "The ceiling for all links together was lower than the sum of the targets: raise it."
	case links.Late:
		return "Run weir on a machine with idle cores, or on several: it was late with its requests."
	case links.Start:
		return "Nothing: the rate follows a change of the target."
	}
	return "Report this as a defect of weir, with the run directory."
}

// A causeGroup is a cause with the links that it held below their target.
type causeGroup struct {
	cause   *links.Cause
	missing float64
	ratio   float64
	links   []string
}

// causeGroups returns the causes of the whole challenge, the most missing bytes first, with the
// links whose causes they are. A site that is the source of some links and the destination of others
// is one cause.
func causeGroups(c *links.Challenge) []causeGroup {
	var all []causeGroup
	place := map[string]int{}
	for i := range c.Total.Causes {
		x := &c.Total.Causes[i]
		k, known := place[x.Fact.Text]
		if !known {
			k, place[x.Fact.Text] = len(all), len(all)
			all = append(all, causeGroup{cause: &x.Cause})
		}
		all[k].missing, all[k].ratio = all[k].missing+x.Missing, all[k].ratio+x.Ratio
	}
	for i := range c.Links {
		l := &c.Links[i]
		for _, x := range l.Causes {
			k, known := place[x.Fact.Text]
			if name := l.Name(); known && !slices.Contains(all[k].links, name) {
				all[k].links = append(all[k].links, name)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b causeGroup) int { return cmp.Compare(b.missing, a.missing) })
	return all
}

// leastAdvice is the share of the missing bytes below which a cause has no advice.
const leastAdvice = 0.01

// leastChange is the same for changes of the target.
const leastChange = 0.1

// adviceSection is the table of causes, with the next step for each.
func adviceSection(c *links.Challenge) section {
	s := section{ID: "causes", Title: "What held the links back, and what to do next", Open: true,
		Note: "Missing is the part of all bytes that the links were below their targets; evidence is from the minutes that missed the most."}
	all := causeGroups(c)
	all = slices.DeleteFunc(all, func(g causeGroup) bool {
		return g.ratio < leastAdvice || g.cause.Kind == links.Injection && g.cause.Detail == links.Start && g.ratio < leastChange
	})
	tabulate(&s, all, func(causeGroup) bool { return false }, []field[causeGroup]{
		{"missing", func(g causeGroup) string { return unit.Bytes(g.missing) }},
		{"share", func(g causeGroup) string { return share(g.ratio) }},
		{"~cause", func(g causeGroup) string { return causeText(g.cause) }},
		{"~links", func(g causeGroup) string { return someOf(g.links) }},
		{".~evidence", func(g causeGroup) string { return causeEvidence(g.cause) }},
		{"~what to do next", func(g causeGroup) string { return advice(g.cause) }},
	})
	return s
}

// someOf lists the first names and counts the others.
func someOf(names []string) string {
	const most = 4
	if len(names) > most+1 {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// mostFacts is the number of facts of evidence that a table shows.
const mostFacts = 3

func causeEvidence(c *links.Cause) string {
	var texts []string
	for _, e := range c.Evidence {
		texts = append(texts, strings.TrimSuffix(e.Text, "."))
	}
	return cmp.Or(strings.Join(texts[:min(mostFacts, len(texts))], "; "), "-")
}
