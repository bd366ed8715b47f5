// How things are written. Nothing here decides their contents: causes come from the controller.

export const states = {
  launching: "launching", joining: "joining", initializing: "initializing", ready: "ready", not_ready: "not ready",
  chosen: "chosen to go", draining: "draining", unmanaged: "not managed",
};
export const signs = {
  launching: "…", joining: "…", initializing: "…", ready: "", not_ready: "×", chosen: "⇢", draining: "⇣", unmanaged: "○",
};
export const onTheWay = (n) => n.state === "launching" || n.state === "joining" || n.state === "initializing";
export const stays = (n) => n.state === "ready" && n.stays && n.stays.state === "Held";
export const sign = (n) => signs[n.state] || (stays(n) ? "!" : "");

const two = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 }).format;
export const dollars = (n) => (n == null ? "–" : n === 0 ? "$0" : n < 1 ? "$" + String(Number(n.toFixed(4))) : "$" + two(n));
export const perHour = (n, unpriced) =>
  (n == null ? "–" : dollars(n) + "/h") + (unpriced > 0 ? ` +${unpriced} unpriced` : "");
export const cores = (m) => (m >= 1e6 ? Math.round(m / 1000).toLocaleString("en") : m % 1000 === 0 ? String(m / 1000) : m < 1000 ? m + "m" : String(Number((m / 1000).toFixed(2))));
export const bytes = (n) => {
  const units = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) { n /= 1024; i++; }
  return (n >= 100 || Number.isInteger(n) ? Math.round(n) : n.toFixed(1)) + units[i];
};
export const share = ([used, of]) => (of > 0 ? Math.min(1, used / of) : 0);
export const percent = (pair) => (pair[1] > 0 ? Math.round((100 * pair[0]) / pair[1]) + " %" : "–");
export const count = (n, one, more) => n.toLocaleString("en") + " " + (n === 1 ? one : more);
export const age = (seconds) => {
  if (!(seconds >= 0)) return "–";
  if (seconds < 90) return Math.floor(seconds) + "s";
  if (seconds < 5400) return Math.floor(seconds / 60) + "m";
  if (seconds < 172800) return Math.floor(seconds / 3600) + "h";
  return Math.floor(seconds / 86400) + "d";
};
export const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour12: false });
export const utc = (ms) => new Date(ms).toISOString().replace(/\.\d+Z/, "Z");
export const byText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
