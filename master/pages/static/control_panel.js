// Changes to a running test, with the words of the command line; the run itself checks them, and answers.

import { el, fill } from "./dom.js";

/** The words of a command line: quotes hold one together, as a shell's do. */
export function wordsOf(text) {
  const words = text.match(/(?:'[^']*'|"[^"]*"|[^\s'"]|['"])+/g) ?? [];
  return words.map((one) => one.replace(/'([^']*)'|"([^"]*)"/g, (_, single, double) => single ?? double));
}

export class ControlPanel {
  constructor(model, source) {
    this.model = model;
    this.source = source;
    this.answer = el("output", { class: "answer", role: "status" });
    this.edit = this.field("edit", "all=all iops=5k", "Edit");
    this.target = this.field("target", "all=all target=2ms", "Target");
    this.mark = this.field("mark", "fan pulled", "Mark");
    this.buttons = el("span", { class: "presets" });
    this.node = el(
      "details",
      { class: "control", open: true },
      el("summary", {}, "Control this run"),
      el("div", { class: "bar" }, this.edit, this.target, this.mark),
      el("div", { class: "bar" }, this.buttons),
      this.answer,
    );
    this.show();
  }

  field(action, example, title) {
    const input = el("input", {
      type: "text",
      placeholder: example,
      "aria-label": `${action}, for example ${example}`,
      maxlength: 500,
    });
    const submit = (event) => {
      event.preventDefault();
      const text = input.value.trim();
      if (text) this.act(action, action === "mark" ? [text] : wordsOf(text));
    };
    return el(
      "form",
      { class: "control-field", onsubmit: submit },
      input,
      el("button", { type: "submit", class: "small" }, title),
    );
  }

  show() {
    const isPaused = this.model.status?.paused ?? false;
    this.node.hidden = !this.model.isRunning;
    if (this.shown === isPaused) return;
    this.shown = isPaused;
    fill(
      this.buttons,
      [
        [isPaused ? "unpause" : "pause", ""],
        ["skip", "End this step with what it has measured?"],
        ["stop", "Stop the run? Its results so far are kept."],
      ].map(([action, question]) =>
        el(
          "button",
          {
            type: "button",
            class: action === "stop" ? "danger" : "",
            onclick: () => (!question || confirm(question)) && this.act(action, []),
          },
          action,
        ),
      ),
    );
  }

  async act(action, words) {
    fill(this.answer, "...");
    try {
      const said = await this.source.act(this.model.id, action, words);
      fill(this.answer, said.text);
      this.answer.classList.toggle("refused", !said.ok);
    } catch (error) {
      fill(this.answer, error.message);
      this.answer.classList.add("refused");
    }
  }
}
