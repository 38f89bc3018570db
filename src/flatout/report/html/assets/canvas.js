// Shared by the two canvases: sharp pixels, colours for names, text that fits, a tip at the pointer.
const FONT = "11px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
const LETTER = 6.7;

function sharpen(canvas, width, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

// The same name has the same colour everywhere. Digits are ignored, so that layer_1 and layer_2 look alike.
function hueOf(name) {
  let hash = 7;
  for (let at = 0; at < name.length; at++) {
    const code = name.charCodeAt(at);
    if (code < 48 || code > 57) hash = (hash * 31 + code) | 0;
  }
  return ((hash >>> 3) * 47) % 360;
}
const isDark = () => document.documentElement.dataset.theme === "dark";
const fillOf = (name) => `hsl(${hueOf(name)} ${isDark() ? "42% 44%" : "52% 74%"})`;

function fitted(text, width) {
  const room = Math.floor((width - 6) / LETTER);
  return room >= text.length ? text : room < 3 ? "" : `${text.slice(0, room - 1)}…`;
}

function showTip(tip, event, lines) {
  tip.replaceChildren(element("b", {}, lines[0]), ...lines.slice(1).flatMap((line) => [line, element("br")]));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 18}px`;
}
