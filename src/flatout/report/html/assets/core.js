// Used by every part of the page. Text from the case is only inserted as text: nothing here parses markup.
const one = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// The values that a view has put next to its elements.
const valuesOf = (root) => JSON.parse(one('script[type="application/json"]', root).textContent);

async function unpack(text) {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

// In the same format as the Python side.
function duration(ms) {
  const size = Math.abs(ms);
  if (size >= 100000) return `${(ms / 1000).toFixed(0)} s`;
  if (size >= 1000) return `${(ms / 1000).toFixed(size >= 10000 ? 1 : 2)} s`;
  if (size >= 10) return `${ms.toFixed(1)} ms`;
  if (size >= 0.1) return `${ms.toFixed(2)} ms`;
  if (size >= 0.0001) return `${(ms * 1000).toFixed(1)} µs`;
  return size ? `${(ms * 1e6).toFixed(0)} ns` : "0 ms";
}
const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.0995 ? 1 : 0)} %`;
const counted = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

// Work that waits until its element is near the screen; printing needs all of it.
const waiting = new Map();
const watcher = new IntersectionObserver(
  (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => begin(entry.target)),
  { rootMargin: "300px" },
);
function whenNear(target, work) {
  waiting.set(target, work);
  watcher.observe(target);
}
function begin(target) {
  const work = waiting.get(target);
  waiting.delete(target);
  watcher.unobserve(target);
  if (work) work();
}
const beginAll = () => [...waiting.keys()].forEach(begin);

function download(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
