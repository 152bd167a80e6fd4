// Elements of the page. Rule: data become text or attributes, never markup.

/** An element. `attributes`: "onclick" and the like are listeners, true is an attribute without value. */
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

const SVG = "http://www.w3.org/2000/svg";

/** The same within an SVG. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(2).filter((one) => one !== null && one !== undefined && one !== false));
  return node;
}

/** Give a node other children. */
export function fill(node, ...children) {
  node.replaceChildren(...children.flat(2).filter((one) => one !== null && one !== undefined && one !== false));
}

const FOCUSABLE = "button, select, input, summary, a[href]";
const filledWith = new WeakMap();

/** Give a node the children that `make` returns, unless it has those of the same data. So what a user has opened stays
 * open while a run goes on, and the focus stays where it is. */
export function refill(node, data, make) {
  const key = JSON.stringify(data);
  if (filledWith.get(node) === key) return;
  filledWith.set(node, key);
  const place = [...node.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement);
  fill(node, make());
  if (place >= 0) node.querySelectorAll(FOCUSABLE)[place]?.focus();
}

/** "1 host", "2 hosts". */
export function counted(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** A table with a row header in each row. `columns`: {title, cell(row), number, class, label}; a label
 * stands before the cell where a style shows it: on a phone, whose rows are stacked. */
export function table(caption, columns, rows, attributes = {}) {
  const head = columns.map((one) => el("th", { scope: "col", class: one.number && "number" }, one.title));
  const body = rows.map((row) =>
    el(
      "tr",
      {},
      columns.map((one, place) => {
        const content = one.cell(row);
        return place === 0
          ? el("th", { scope: "row" }, content)
          : el("td", { class: one.number ? "number" : one.class, "data-label": one.label }, content);
      }),
    ),
  );
  return el(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    el("table", attributes, el("caption", {}, caption), el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)),
  );
}

/** A labelled choice. `options`: [value, text] pairs. */
export function choice(label, options, chosen, onchange) {
  const select = el(
    "select",
    { "aria-label": label, onchange: (event) => onchange(event.target.value) },
    options.map(([value, text]) => el("option", { value, selected: value === chosen }, text)),
  );
  return el("label", { class: "choice" }, el("span", {}, label), select);
}

/** The same of options in groups: [group's text, options] pairs. */
export function grouped(label, groups, chosen, onchange) {
  const select = el(
    "select",
    { "aria-label": label, onchange: (event) => onchange(event.target.value) },
    groups.map(([title, options]) =>
      el(
        "optgroup",
        { label: title },
        options.map(([value, text]) => el("option", { value, selected: value === chosen }, text)),
      ),
    ),
  );
  return el("label", { class: "choice" }, el("span", {}, label), select);
}

/** A sentence in which words between backquotes are code. */
export function prose(text) {
  return text.split("`").map((part, place) => (place % 2 ? el("code", {}, part) : part));
}

/** A figure: in brackets where its verdict discredits it, in parentheses where it is partial. */
export function marked(text, verdict, why = "a reason below speaks against this figure") {
  if (text === "-") return text;
  if (verdict === "invalid") return el("span", { class: "discredited", title: why }, `[${text}]`);
  return verdict === "partial" ? el("span", { title: "of a part of what was planned" }, `(${text})`) : text;
}

/** A verdict as a mark with its word. */
export function badge(word) {
  return word ? el("span", { class: `badge ${word.replace(" ", "-")}` }, word) : el("span", { class: "quiet" }, "-");
}
