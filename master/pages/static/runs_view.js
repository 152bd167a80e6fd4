// The list of runs: search, and the choice of those to compare.

import { addresses, listed } from "./source.js";
import { badge, el, fill, marked, table } from "./dom.js";
import { count, duration, shortTime, utcTime } from "./format.js";

const INVALID = "invalid: the page of the run says why";
const LIST_REFRESH_MS = 3000;

/** Show the list in a node; returns what ends it. */
export function showRuns(source, node) {
  let runs = [];
  let words = "";
  const chosen = new Set();
  const list = el("div");
  const compare = el("a", { class: "button", role: "button", "aria-disabled": "true" }, "Compare");
  const all = el(
    "button",
    {
      type: "button",
      onclick: () => {
        const ids = shown().map((run) => run.id);
        const isAll = ids.every((id) => chosen.has(id));
        ids.forEach((id) => (isAll ? chosen.delete(id) : chosen.add(id)));
        showChoice();
        render();
      },
    },
    "Select all",
  );
  const hint = el("span", { class: "quiet" });
  const faults = el("div", { class: "quiet" });

  function showChoice() {
    const ids = [...chosen];
    const isReady = ids.length > 1;
    if (isReady) compare.setAttribute("href", `#/compare/${listed(ids)}`);
    else compare.removeAttribute("href");
    compare.setAttribute("aria-disabled", String(!isReady));
    compare.textContent = isReady ? `Compare ${ids.length} runs` : "Compare";
    hint.textContent = isReady ? "" : "Select two or more runs to compare them.";
  }

  function shown() {
    const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
    return runs.filter((run) => {
      const text = [run.run, run.state, run.verdict, run.plan, run.load, ...run.hosts, ...run.steps]
        .join(" ")
        .toLowerCase();
      return parts.every((part) => text.includes(part));
    });
  }

  const columns = [
    {
      title: "run",
      cell: (run) => el("a", { href: `#/run/${encodeURIComponent(run.id)}`, title: run.folder }, run.run),
    },
    {
      title: "compare",
      cell: (run) =>
        el("input", {
          type: "checkbox",
          "aria-label": `compare ${run.run}`,
          checked: chosen.has(run.id),
          onchange: (event) => {
            if (event.target.checked) chosen.add(run.id);
            else chosen.delete(run.id);
            showChoice();
          },
        }),
    },
    { title: "load", cell: (run) => el("span", { class: "cut", title: run.load ?? "" }, run.load ?? "-") },
    { title: "IOPS", number: true, cell: (run) => marked(count(run.overall_iops), run.rate_verdict, INVALID) },
    { title: "verdict", cell: (run) => badge(run.verdict) },
    { title: "state", cell: (run) => badge(run.state) },
    { title: "started", cell: (run) => timeOf(run) },
    { title: "length", number: true, cell: (run) => duration(run.length_s) },
    {
      title: "hosts",
      number: true,
      cell: (run) => el("span", { title: run.hosts.join(", ") }, String(run.hosts.length)),
    },
    { title: "steps", cell: (run) => el("span", { class: "cut", title: run.steps.join(", ") }, run.steps.join(", ")) },
  ];

  function render() {
    const found = shown();
    const focused = document.activeElement?.getAttribute?.("aria-label");
    if (!runs.length)
      fill(list, el("p", { class: "empty" }, "There are no runs here yet. `ivypy run PLAN.yaml` makes one."));
    else if (!found.length)
      fill(list, el("p", { class: "empty" }, `No run has “${words}” in its name, plan, load, hosts or steps.`));
    else
      fill(list, table(`${found.length} of ${runs.length} runs, the newest first`, columns, found, { class: "runs" }));
    if (focused) [...list.querySelectorAll("[aria-label]")].find((one) => one.ariaLabel === focused)?.focus();
  }

  const search = el("input", {
    type: "search",
    class: "wide",
    placeholder: "name, plan, load, host, step, verdict",
    "aria-label": "search runs",
    oninput: (event) => {
      words = event.target.value;
      render();
    },
  });
  fill(node, el("h1", {}, "Runs"), el("div", { class: "bar" }, search, all, compare, hint), list, faults);
  showChoice();

  let said = "";
  async function refresh() {
    try {
      const answer = await source.json(addresses.runs());
      const unread = answer.not_read ?? []; // a report has none
      const text = JSON.stringify([
        unread,
        ...answer.runs.map((run) => ({ ...run, length_s: Math.round(run.length_s ?? 0) })),
      ]);
      if (text === said) return;
      said = text;
      runs = answer.runs;
      fill(
        faults,
        unread.length
          ? el(
              "details",
              {},
              el("summary", {}, `${unread.length} folder${unread.length === 1 ? "" : "s"} could not be read`),
              el(
                "ul",
                {},
                unread.map((one) => el("li", {}, one)),
              ),
            )
          : null,
      );
      render();
    } catch (error) {
      if (!runs.length) fill(list, el("p", { class: "empty", role: "alert" }, error.message));
    }
  }
  refresh();
  const timer = source.isLive ? setInterval(refresh, LIST_REFRESH_MS) : null;
  return () => clearInterval(timer);
}

function timeOf(run) {
  const unix = Date.parse(run.start_utc) / 1000;
  return el("time", { datetime: run.start_utc, title: utcTime(unix) }, shortTime(unix));
}
