// The page's address: everything that can be seen has one. A proxy may have put a path in front of all of them.
import { signal, computed } from "@preact/signals";

export const base = new URL(".", import.meta.url).pathname;
const here = () => decode(location.pathname.slice(base.length - 1)) + location.search;
const decode = (path) => { try { return decodeURI(path); } catch { return path; } };
const address = signal(here());
addEventListener("popstate", () => { address.value = here(); });

export const route = computed(() => {
  const [path, search] = address.value.split("?");
  const parts = location.pathname.slice(base.length).split("/").filter(Boolean).map((p) => {
    try { return decodeURIComponent(p); } catch { return p; }
  });
  return { path, parts, query: Object.fromEntries(new URLSearchParams(search || "")) };
});

// to returns the address of a page. It encodes the parts of the path and of the query.
export const to = (parts, query) => {
  const search = new URLSearchParams(Object.entries(query || {}).filter(([, v]) => v)).toString();
  return base + parts.map(encodeURIComponent).join("/") + (search ? "?" + search : "");
};

export const go = (href, replace) => {
  if (replace) history.replaceState(null, "", href); else history.pushState(null, "", href);
  const moved = address.value.split("?")[0];
  address.value = here();
  if (!replace && moved !== address.value.split("?")[0]) {
    scrollTo(0, 0);
    requestAnimationFrame(() => document.querySelector("main h1")?.focus({ preventScroll: true }));
  }
};

// change changes parts of the query of this page.
export const change = (more) => go(to(route.value.parts, { ...route.value.query, ...more }), true);

// follow handles links: a plain click does not reload the page.
export const follow = (event) => {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(event.currentTarget.getAttribute("href"));
};
