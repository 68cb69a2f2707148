// Keeps the page up to date. It fetches the changing part of the page again and again, and replaces
// the part that is shown. If that fails, the page shows how old its contents are. Without this
// script the page still works, and a link loads it again.
(() => {
	"use strict";
	const view = document.getElementById("view");
	const live = document.getElementById("live");
	const told = document.getElementById("told");
	const every = Math.max(1000, Number(view.dataset.poll) || 2000);
	let fresh = Date.now();
	let asking = false;
	let tag = ""; // of the part that is shown
	const ahead = Number(view.dataset.now) - Date.now(); // of the server's clock

	// The time on the server's clock makes the times on the page readable, also in a screenshot.
	const now = document.getElementById("now");
	const tick = () => { now.textContent = `${new Date(Date.now() + ahead).toISOString().slice(0, 19).replace("T", " ")} UTC`; };

	// A screen reader announces each change of this text, so it has the time of the data and not a
	// growing age.
	const tell = () => {
		const old = Date.now() - fresh > 3 * every + 2000;
		const down = view.querySelector("#down");
		live.classList.toggle("old", old || down !== null);
		const text = old ? `Old: this is from ${new Date(fresh).toISOString().slice(11, 19)} UTC` : down ? `Not live: ${down.dataset.says}` : "Live";
		if (live.textContent !== text) live.textContent = text;
	};

	// Returns a function that finds the element again after its part was replaced, so that it can get
	// the focus back. A rectangle is found by its data-k, a link by its address, and a button by its
	// place among the buttons.
	const marked = (e) => {
		if (!e || !view.contains(e)) return null;
		const at = [...view.querySelectorAll("button")].indexOf(e);
		if (at >= 0) return () => view.querySelectorAll("button")[at];
		const of = e.dataset.k ? `[data-k="${CSS.escape(e.dataset.k)}"]` : e.getAttribute("href") && `a[href="${CSS.escape(e.getAttribute("href"))}"]`;
		return of && (() => view.querySelector(of));
	};

	const replace = (html) => {
		const focus = marked(document.activeElement);
		const scrolled = [...view.querySelectorAll(".wide")].map((e) => e.scrollLeft);
		view.innerHTML = html;
		view.querySelectorAll(".wide").forEach((e, i) => { e.scrollLeft = scrolled[i] || 0; });
		rove();
		const again = focus && focus();
		if (again) {
			if (again.dataset.k) choose(again);
			again.focus({ preventScroll: true });
		}
	};

	// The part is not replaced while the user selects text or fills in a field.
	const changed = (e) => e.tagName === "SELECT" ? e.selectedIndex !== Math.max(0, [...e.options].findIndex((o) => o.defaultSelected)) : e.value !== e.defaultValue;
	const busy = () => {
		const s = getSelection();
		return s && !s.isCollapsed && view.contains(s.anchorNode) || [...view.querySelectorAll("input, select")].some((e) => e === document.activeElement || changed(e));
	};

	const ask = async () => {
		if (asking || document.hidden) return;
		asking = true;
		try {
			const url = new URL(location.href);
			url.searchParams.set("part", "1");
			url.hash = "";
			const answer = await fetch(url, { cache: "no-store", headers: tag ? { "If-None-Match": tag } : {}, signal: AbortSignal.timeout(15000) });
			// With 503 the page names what does not answer. The header excludes a proxy's page.
			if (answer.status === 304) {
				fresh = Date.now();
			} else if (answer.ok || answer.status === 404 || answer.status === 503 && answer.headers.has("Weir-Page")) {
				const html = await answer.text();
				if (!busy()) {
					replace(html);
					tag = answer.headers.get("ETag") || "";
					fresh = Date.now();
				}
			}
		} catch {
			// No message here: tell shows the age.
		} finally {
			asking = false;
			tell();
		}
	};

	// The tab key reaches one of the rectangles. The arrow keys move from there to the others.
	const boxes = () => [...view.querySelectorAll(".shards a")];
	const choose = (one) => {
		boxes().forEach((e) => e.setAttribute("tabindex", e === one ? "0" : "-1"));
	};
	const rove = () => {
		const first = view.querySelector(".shards a");
		if (first) first.setAttribute("tabindex", "0");
	};
	view.addEventListener("keydown", (e) => {
		const all = boxes();
		const at = all.indexOf(document.activeElement);
		const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[e.key];
		const to = e.key === "Home" ? 0 : e.key === "End" ? all.length - 1 : at + step;
		if (at < 0 || !all[to]) return;
		e.preventDefault();
		choose(all[to]);
		all[to].focus();
	});
	const show = (e) => {
		const box = e.target.closest && e.target.closest(".shards a");
		if (box) told.textContent = box.getAttribute("aria-label");
	};
	view.addEventListener("focusin", show);
	view.addEventListener("mouseover", show);
	view.addEventListener("focusout", () => { told.textContent = ""; });
	view.addEventListener("mouseout", () => { told.textContent = ""; });

	// A time gets its local time as a title when it is pointed at or focused.
	const local = (e) => {
		const at = e.target.closest && e.target.closest("time[datetime], [data-at]");
		if (!at || at.dataset.local) return;
		const text = `${new Date(at.getAttribute("datetime") || at.dataset.at).toLocaleString([], { timeZoneName: "short" })}`;
		at.dataset.local = text;
		if (at instanceof SVGElement) {
			at.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "title")).textContent = text;
		} else {
			at.title = text;
		}
	};
	view.addEventListener("mouseover", local);
	view.addEventListener("focusin", local);

	rove();
	if (view.dataset.poll === "0") return; // a page with a form is never replaced
	tell();
	setInterval(ask, every);
	tick();
	setInterval(() => { tell(); tick(); }, 1000);
	document.addEventListener("visibilitychange", ask);
})();
