package browser

// lookScript tells what is wrong with how a page looks: it is wider than the
// screen, something sticks out of it, text has too little contrast for WCAG AA,
// something to press on a phone is too small for a finger, a picture or a field
// has no name, or a heading is missing.
const lookScript = `(() => {
  const bad = [];
  const name = e => e.tagName.toLowerCase() + (e.id ? "#" + e.id : "") + (e.className && e.className.baseVal === undefined ? "." + String(e.className).trim().replace(/\s+/g, ".") : "") + " " + JSON.stringify((e.innerText || e.value || "").slice(0, 30));
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) bad.push("the page is " + root.scrollWidth + " px wide");
  const shown = e => { const r = e.getBoundingClientRect(), s = getComputedStyle(e); return r.width > 1 && r.height > 1 && s.visibility !== "hidden" && s.opacity !== "0" && r.right > 0; };

  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = c => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1); const d = canvas.getImageData(0, 0, 1, 1).data; return [d[0], d[1], d[2], d[3] / 255]; };
  const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const light = c => { const [r, g, b] = c.slice(0, 3).map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = e => { const layers = []; for (let n = e; n; n = n.parentElement) { const c = rgba(getComputedStyle(n).backgroundColor); if (c[3] > 0) { layers.push(c); if (c[3] === 1) break; } } let c = [255, 255, 255, 1]; while (layers.length) c = over(layers.pop(), c); return c; };

  document.querySelectorAll("body *").forEach(e => {
    if (!shown(e) || e.closest("svg")) return;
    const r = e.getBoundingClientRect();
    if (r.right > root.clientWidth + 1 && !e.closest(".table-box")) bad.push(name(e) + " sticks out to " + Math.round(r.right) + " px");
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (own || (e.tagName === "INPUT" && e.value && !["hidden", "checkbox", "radio"].includes(e.type))) {
      const s = getComputedStyle(e), back = behind(e), fore = over(rgba(s.color), back);
      const [hi, lo] = [light(fore), light(back)].sort((a, b) => b - a), ratio = (hi + 0.05) / (lo + 0.05);
      const size = parseFloat(s.fontSize), large = size >= 24 || (size >= 18.66 && s.fontWeight >= 700);
      if (ratio < (large ? 3 : 4.5)) bad.push(name(e) + " has a contrast of " + ratio.toFixed(2));
    }
    if (root.clientWidth <= 400 && e.matches("button, summary, select, a.btn, input:not([type=checkbox]):not([type=radio]):not([type=hidden])") && r.height < 32) bad.push(name(e) + " is only " + Math.round(r.height) + " px high");
    if (e.matches("img:not([alt]), button:empty, a:empty")) bad.push(name(e) + " has no name");
    if (e.matches("input:not([type=hidden]), select, textarea") && !(e.labels && e.labels.length) && !e.getAttribute("aria-label")) bad.push(name(e) + " has no label");
  });
  if (document.querySelectorAll("h1").length !== 1) bad.push("there are " + document.querySelectorAll("h1").length + " main headings");
  if (!document.documentElement.lang || !document.title) bad.push("no language or title");
  return [...new Set(bad)];
})()`
