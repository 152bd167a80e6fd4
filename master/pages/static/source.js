// Where the page has its data from: a server, or the archive that a report carries.
//
// Rule: both give the same answers under the same addresses; nothing else knows which of them it is.

export const addresses = {
  runs: () => "/api/runs",
  compare: (a, b, metrics, limit) =>
    `/api/compare?a=${listed(a)}&b=${listed(b)}&metric=${listed(metrics)}` +
    (limit ? `&max_regression=${encodeURIComponent(limit)}%25` : ""),
  run: (id) => `/api/runs/${encodeURIComponent(id)}`,
  series: (id, step, by, instance, from) => stepAddress(id, step, "series", { by, instance, from }),
  histograms: (id, step, by, instance, from) => stepAddress(id, step, "histograms", { by, instance, from }),
  cpu: (id, step, from) => stepAddress(id, step, "cpu", { from }),
  instances: (id, step, by) => stepAddress(id, step, "instances", { by }),
  sections: (id, step, by, instance) => stepAddress(id, step, "sections", { by, instance }),
  sectionMap: (id, step, by) => stepAddress(id, step, "section_map", { by }),
  control: (id, step) => stepAddress(id, step, "control", {}),
  distribution: (id, step, by, instance) => stepAddress(id, step, "distribution", { by, instance }),
  elements: (id, step, by, instance) => stepAddress(id, step, "elements", { by, instance }),
  elementLines: (id, step, metric) => stepAddress(id, step, "element_lines", { metric }),
};

/** Words of an address, separated by commas. */
export function listed(words) {
  return words.map(encodeURIComponent).join(",");
}

function stepAddress(id, step, what, query) {
  const words = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return `${addresses.run(id)}/steps/${step}/${what}${words.length ? "?" + words.join("&") : ""}`;
}

/** Something that the source does not have; its message is a sentence. */
export class Missing extends Error {}

/** No answer came, or not all of it. */
class Unreachable extends Error {
  constructor() {
    super("The server does not answer.");
  }
}

export const AGAIN_MS = 3000;

/** What `ask` gives. While no server answers, `onwait` hears that, and it is asked again, unless it `isOver`: null. */
export async function answered(ask, onwait, isOver = () => false) {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (isOver()) return null;
      if (!(error instanceof Unreachable)) throw error;
      onwait(error);
      await new Promise((ready) => setTimeout(ready, AGAIN_MS));
      if (isOver()) return null;
    }
  }
}

/** The archive in the document, else the server. */
export async function sourceOf() {
  const packed = document.getElementById("archive-gz");
  if (packed) return new ArchiveSource(await unpacked(packed.textContent).json());
  const archive = document.getElementById("archive");
  return archive ? new ArchiveSource(JSON.parse(archive.textContent)) : new LiveSource();
}

function bytesOf(base64) {
  return Uint8Array.from(atob(base64.trim()), (letter) => letter.charCodeAt(0));
}

/** What base64 of gzip holds, to be read as text, JSON or bytes. */
function unpacked(base64) {
  return new Response(new Blob([bytesOf(base64)]).stream().pipeThrough(new DecompressionStream("gzip")));
}

class ArchiveSource {
  constructor(archive) {
    this.answers = archive.answers;
    this.leftOut = archive.left_out ?? [];
    this.notes = archive.notes ?? [];
    this.route = archive.route ?? ""; // the view to begin with
    this.isLive = false;
  }

  /** A recorded answer; {"gzip": ...} is one that was compressed. */
  recorded(address) {
    if (!(address in this.answers)) throw new Missing("The report does not contain this.");
    return this.answers[address];
  }

  async letIn() {}

  async json(address) {
    const answer = this.recorded(address);
    return answer.gzip ? unpacked(answer.gzip).json() : answer;
  }

  async binary(address) {
    return unpacked(this.recorded(address).gzip).arrayBuffer();
  }

  follow() {
    return () => {};
  }
}

/** The body of an answer; a link that breaks on its way is a TypeError to fetch. */
async function whole(body) {
  try {
    return await body;
  } catch (error) {
    throw error instanceof TypeError ? new Unreachable() : error;
  }
}

const KEPT_KEY = "ivypy-key";
let ownKey = null; // where the browser keeps nothing

/** The key that the server gave for its token. Only this origin can read it, port included, in every tab. */
function keptKey() {
  try {
    return localStorage.getItem(KEPT_KEY) ?? ownKey;
  } catch {
    return ownKey;
  }
}

function keepKey(key) {
  ownKey = key;
  try {
    localStorage.setItem(KEPT_KEY, key);
  } catch {
    // for as long as this page is there
  }
}

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15000;

class LiveSource {
  constructor() {
    this.leftOut = [];
    this.notes = [];
    this.isLive = true;
  }

  /** Give the token in the address for a key, and take it out of there. */
  async letIn() {
    const token = new URLSearchParams(location.hash.slice(1)).get("token");
    if (token === null) return;
    try {
      const answer = await this.fetched("/api/session", { method: "POST" }, token);
      keepKey((await whole(answer.json())).key);
    } catch (error) {
      if (error instanceof Unreachable || !keptKey()) throw error; // an old address, of a browser that was let in since
    }
    history.replaceState(null, "", location.pathname);
  }

  async json(address) {
    return whole((await this.fetched(address)).json());
  }

  async binary(address) {
    return whole((await this.fetched(address)).arrayBuffer());
  }

  async fetched(address, options = {}, secret = keptKey()) {
    const headers = { ...options.headers, ...(secret ? { Authorization: `Bearer ${secret}` } : {}) };
    let answer;
    try {
      answer = await fetch(address, { credentials: "omit", ...options, headers });
    } catch {
      throw new Unreachable();
    }
    if (answer.ok) return answer;
    const said = await answer.json().catch(() => ({}));
    const words = said.error ?? `The server answered ${answer.status}.`;
    throw answer.status === 404 ? new Missing(words) : new Error(words);
  }

  async act(id, action, words = [], force = false) {
    const body = JSON.stringify({ action, words, force });
    const headers = { "Content-Type": "application/json" };
    return (await this.fetched(`${addresses.run(id)}/act`, { method: "POST", body, headers })).json();
  }

  /** Call `onstate` with each newest state, `onlink` with true or false; returns what ends it. */
  follow(id, onstate, onlink) {
    let socket = null;
    let wait = FIRST_WAIT_MS;
    let timer = null;
    let ended = false;
    const open = () => {
      const scheme = location.protocol === "https:" ? "wss" : "ws";
      socket = new WebSocket(
        `${scheme}://${location.host}${addresses.run(id)}/live`,
        ["ivypy", keptKey()].filter(Boolean),
      );
      socket.onopen = () => onlink(true);
      socket.onmessage = (message) => {
        wait = FIRST_WAIT_MS;
        onstate(JSON.parse(message.data));
      };
      socket.onclose = () => {
        if (ended) return;
        onlink(false);
        timer = setTimeout(open, wait);
        wait = Math.min(2 * wait, LONGEST_WAIT_MS);
      };
    };
    open();
    return () => {
      ended = true;
      clearTimeout(timer);
      socket.close();
    };
  }
}
