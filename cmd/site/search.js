// The search: all words of the query in a heading or the text below it, headings first. The menu of narrow screens.
"use strict";
const query = document.getElementById("query");
const found = document.getElementById("found");
const menu = document.getElementById("menu");

function score(entry, words) {
	const heading = (entry.heading + " " + entry.title).toLowerCase(), text = entry.text.toLowerCase();
	let sum = 0;
	for (const word of words) {
		const inHeading = heading.includes(word), inText = text.includes(word);
		if (!inHeading && !inText) return 0;
		sum += (inHeading ? 10 : 0) + (inText ? 1 : 0);
	}
	return sum;
}

function show() {
	const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
	const hits = words.length === 0 ? [] : entries.map((entry) => ({ entry, points: score(entry, words) }))
		.filter((hit) => hit.points > 0).sort((a, b) => b.points - a.points).slice(0, 20);
	found.hidden = words.length === 0;
	found.replaceChildren(...(hits.length > 0 ? hits.map((hit) => row(hit.entry, words[0])) : [nothing()]));
}

function row(entry, word) {
	const item = document.createElement("li"), link = document.createElement("a"), about = document.createElement("small");
	link.href = entry.page + (entry.anchor ? "#" + entry.anchor : "");
	link.textContent = entry.heading === entry.title ? entry.title : entry.title + " › " + entry.heading;
	const at = Math.max(0, entry.text.toLowerCase().indexOf(word) - 60);
	about.textContent = (at > 0 ? "…" : "") + entry.text.slice(at, at + 160);
	item.append(link, about);
	return item;
}

function nothing() {
	const item = document.createElement("li");
	item.textContent = "Nothing found";
	return item;
}

query.addEventListener("input", show);
found.addEventListener("click", () => { found.hidden = true; });
document.addEventListener("keydown", (event) => {
	if (event.key === "/" && document.activeElement !== query) {
		event.preventDefault();
		query.focus();
	} else if (event.key === "Escape") {
		found.hidden = true;
		menu.setAttribute("aria-expanded", "false");
	}
});
menu.setAttribute("aria-expanded", "false");
menu.addEventListener("click", () => menu.setAttribute("aria-expanded", String(menu.getAttribute("aria-expanded") === "false")));
