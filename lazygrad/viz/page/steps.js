// Every form and every rewrite, one at a time, with what changed marked.
import { make } from "./words.js";

/** `details.steps` and how many more there are; ids of elements begin with `prefix`. */
export function stepsSection(details, prefix) {
  const steps = details.steps;
  const heading = make("p", { id: `${prefix}step-heading`, "aria-live": "polite" }), text = make("pre", { id: `${prefix}step-text`, tabindex: 0 });
  const slider = make("input", { type: "range", min: 0, max: steps.length - 1, value: 0, "aria-label": "step", id: `${prefix}step` });
  const go = (at) => {
    at = Math.min(Math.max(at, 0), steps.length - 1);
    slider.value = at;
    const step = steps[at];
    heading.textContent = `[${at + 1}/${steps.length}] ${step.heading}`;
    text.replaceChildren(...step.lines.map(([sign, line]) =>
      make("span", { class: { "-": "gone", "+": "came" }[sign] ?? null }, `${sign} ${line}\n`)));
  };
  const form = (by) => {
    const isForm = (n) => !steps[n].rule;
    for (let n = Number(slider.value) + by; n >= 0 && n < steps.length; n += by) if (isForm(n)) return go(n);
    return go(by < 0 ? 0 : steps.length - 1);
  };
  slider.addEventListener("input", () => go(Number(slider.value)));
  const button = (name, run, id) => make("button", { onclick: run, id }, name);
  const first = steps.findIndex((step) => !step.rule);
  go(Math.max(first, 0));
  return make("section", { "aria-label": "forms and rewrites" }, make("h2", {}, "Forms and rewrites"),
    make("div", { class: "bar" }, button("previous form", () => form(-1), `${prefix}form-back`),
      button("previous", () => go(Number(slider.value) - 1), `${prefix}step-back`), slider,
      button("next", () => go(Number(slider.value) + 1), `${prefix}step-next`), button("next form", () => form(1), `${prefix}form-next`)),
    heading, text,
    details.steps_left_out ? make("p", { class: "soft" }, `${details.steps_left_out} more steps are not in the recording`) : null);
}
