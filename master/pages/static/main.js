// The page: which view the address asks for, and the theme.

import { el, fill } from "./dom.js";
import { addresses, answered, sourceOf } from "./source.js";
import { showRuns } from "./runs_view.js";
import { showRun } from "./run_view.js";
import { showComparison } from "./compare_view.js";
import { watchTheme } from "./theme.js";

/** {view, ...} of an address: "#/", "#/run/ID[/step/N][/TAB]", "#/compare/ID,ID[/ID,ID[/5]]". */
function routeOf(hash) {
  const [, view, ids, ...rest] = hash.split("/");
  if (view === "compare") return { view, sides: [ids, rest[0] ?? ""].map(idsOf), limit: idsOf(rest[1])[0] ?? "" };
  if (view !== "run" || !ids) return { view: "runs" };
  const hasStep = rest[0] === "step" && rest[1] !== "" && Number.isInteger(Number(rest[1]));
  return {
    view,
    id: decodeURIComponent(ids),
    step: hasStep ? Number(rest[1]) : null,
    tab: (hasStep ? rest[2] : rest[0]) ?? "",
  };
}

function idsOf(text = "") {
  return text.split(",").filter(Boolean).map(decodeURIComponent);
}

function complain(node, error) {
  fill(node, el("p", { class: "empty", role: "alert" }, error.message));
}

async function start() {
  // The address that `ivypy web` printed, put into a page that is open: only what follows # differs.
  window.addEventListener("hashchange", () => location.hash.startsWith("#token=") && location.reload());
  const node = document.getElementById("main");
  let source;
  let answer;
  try {
    source = await sourceOf();
    answer = await answered(
      async () => {
        await source.letIn();
        return source.json(addresses.runs());
      },
      (error) => complain(node, error),
    );
  } catch (error) {
    complain(node, error);
    return;
  }
  const only = answer.runs.length === 1 ? `#/run/${encodeURIComponent(answer.runs[0].id)}` : "";
  const first = source.isLive ? "" : source.route || only;
  if (first && !location.hash) history.replaceState(null, "", first);
  const foot = [
    ["Notes", source.notes],
    ["What this report leaves out", source.leftOut],
  ].filter(([, lines]) => lines.length);
  fill(
    document.getElementById("left-out"),
    foot.map(([title, lines]) =>
      el(
        "details",
        { open: title === "Notes" },
        el("summary", {}, title),
        el(
          "ul",
          {},
          lines.map((one) => el("li", {}, one)),
        ),
      ),
    ),
  );
  let end = () => {};
  const show = () => {
    end();
    document.title = "ivypy";
    const route = routeOf(location.hash);
    if (route.view === "compare") end = showComparison(source, node, route.sides, route.limit);
    else if (route.view === "run") end = showRun(source, node, route, answer.control && source.isLive);
    else end = showRuns(source, node);
  };
  window.addEventListener("hashchange", show);
  const toggle = watchTheme(show);
  document.getElementById("theme").addEventListener("click", toggle);
}

start();
