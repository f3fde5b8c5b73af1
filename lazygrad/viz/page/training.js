// Learning curves that `lazygrad.log` wrote: a picture for each number, the runs laid over each other.
import { Picture, color, count, make } from "./words.js";

const COLORS = ["kernel", "compile", "replay", "lower", "plan", "copy"], LIVE_MS = 2000;

export function trainingView(recording) {
  const pictures = make("div"), legend = make("div", { class: "bar", id: "runs" });
  const element = make("section", {}, legend, pictures);
  let runs = [], known = "", timer = null;

  async function load() {
    const text = await (await fetch("logs.json")).text();
    if (text === known) return;
    known = text;
    runs = JSON.parse(text);
    legend.replaceChildren(...runs.map((run, n) => {
      const mark = make("span", {}, "● ");
      mark.style.color = color(COLORS[n % COLORS.length]);
      return make("span", {}, mark, `${run.name}: ${count(run.rows.length, "step")}`);
    }));
    const names = [...new Set(runs.flatMap((run) => run.rows.flatMap((row) => Object.keys(row))))];
    pictures.replaceChildren(...names.filter((name) => name !== "step" && name !== "time").map(curve));
  }

  function curve(name) {
    const lines = runs.map((run) => run.rows.filter((row) => typeof row[name] === "number").map((row) => [row.step, row[name]]));
    const points = lines.flat(), last = lines.filter((line) => line.length).map((line) => line.at(-1)[1].toPrecision(4));
    const [x1, x2] = [Math.min(...points.map((p) => p[0])), Math.max(...points.map((p) => p[0]))];
    const [y1, y2] = [Math.min(...points.map((p) => p[1])), Math.max(...points.map((p) => p[1]))];
    const picture = new Picture(`${name}: from ${y1} to ${y2}`, (context, width, height) => {
      const px = (x) => 60 + (width - 70) * (x - x1) / (x2 - x1 || 1), py = (y) => height - 20 - (height - 34) * (y - y1) / (y2 - y1 || 1);
      context.fillStyle = color("soft");
      context.fillText(y2.toPrecision(4), 4, 16);
      context.fillText(y1.toPrecision(4), 4, height - 20);
      context.fillText(`step ${x1}`, 60, height - 4);
      context.fillText(`${x2}`, width - 40, height - 4);
      lines.forEach((line, n) => {
        context.beginPath();
        line.forEach(([x, y], at) => (at ? context.lineTo(px(x), py(y)) : context.moveTo(px(x), py(y))));
        context.strokeStyle = color(COLORS[n % COLORS.length]);
        context.lineWidth = 1.6;
        context.stroke();
      });
    });
    return make("section", {}, make("h2", {}, `${name}: ${last.join(", ")} at last`), make("div", { class: "stage low" }, picture.element));
  }

  return {
    element,
    shown: () => {
      timer ??= setInterval(() => element.isConnected && !element.hidden && load(), LIVE_MS);
      return recording.logs.length ? load() : legend.replaceChildren("Give a file of lazygrad.log: viz FILE --log log.jsonl");
    },
  };
}
