// What all pages share: elements, calls of the API, tables, plots, and the switch between light and dark.

const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? '';

export const byId = (id) => document.getElementById(id);

// An element with attributes and children. Text stays text: nothing that the API answers is read as HTML.
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') made.addEventListener(key, value);
    else if (value !== null && value !== false) made.setAttribute(key, value === true ? '' : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function shape(name, attributes = {}, text = '') {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

export class Problem extends Error {
  constructor(status, body) {
    super(body?.detail ?? body?.title ?? `status ${status}`);
    this.status = status;
    this.code = body?.code;
    // Whether the same request may succeed later.
    this.retryable = body?.retryable ?? status >= 500;
  }
}

// Integers beyond 2^53 stay exact: they are read as strings of digits.
export const exact = (text) =>
  JSON.parse(text, (_, value, context) =>
    typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value) ? (context?.source ?? value) : value,
  );

// `json` is a body that is written already.
export async function call(path, { method = 'GET', body, json = body === undefined ? undefined : JSON.stringify(body), headers = {} } = {}) {
  const sent = { ...headers };
  if (json !== undefined) sent['content-type'] = 'application/json';
  if (method !== 'GET') sent['x-csrf-token'] = meta('csrf-token');
  const answer = await fetch(path, { method, headers: sent, body: json }).catch(() => {
    throw new Problem(0, { detail: 'the API does not answer', retryable: true });
  });
  const text = await answer.text();
  if (answer.status === 401) location.assign('/console/sign-in');
  let read = null;
  try {
    read = text === '' ? null : exact(text);
  } catch {
    read = text;
  }
  if (!answer.ok) throw new Problem(answer.status, read);
  return read;
}

export const say = (text) => {
  byId('notice').textContent = text;
};

// Runs what a person has asked for, and says what became of it where it fails.
export const attempt = (work) => async (event) => {
  event?.preventDefault?.();
  say('');
  try {
    await work(event);
  } catch (error) {
    say(error.message);
  }
};

export function fillTable(table, columns, rows, empty = 'none') {
  const cell = (name, value, number) => element(name, number ? { class: 'number' } : {}, value instanceof Node ? value : String(value ?? ''));
  const head = element('tr', {}, ...columns.map(([title, , number]) => {
    const made = cell('th', title, number);
    made.setAttribute('scope', 'col');
    return made;
  }));
  const body = rows.map((row) => element('tr', {}, ...columns.map(([, value, number]) => cell('td', value(row), number))));
  // Who works by keyboard stays where they were, when what they pressed is drawn anew, and at the table, when it is gone.
  const focused = table.contains(document.activeElement) ? document.activeElement.id : '';
  if (rows.length === 0) body.push(element('tr', {}, element('td', { colspan: String(columns.length) }, empty)));
  table.replaceChildren(element('thead', {}, head), element('tbody', {}, ...body));
  if (focused !== '') (byId(focused) ?? table.closest('[tabindex]'))?.focus();
}

export const facts = (list, pairs) =>
  list.replaceChildren(...pairs.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value instanceof Node ? value : String(value ?? '–'))]));

// A line through points [x, y], with the ends of both axes named. Where y is null the line is broken: nobody knows what was there.
export function plot(title, points, { x, y }) {
  const [width, height, left, bottom] = [640, 220, 60, 30];
  const svg = shape('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': title });
  const known = points.filter(([, value]) => value !== null);
  if (known.length < 2) return svg;
  const lines = [[]];
  for (const point of points) {
    if (point[1] === null) lines.push([]);
    else lines.at(-1).push(point);
  }
  const span = (values) => [Math.min(...values), Math.max(...values)];
  const [low, high] = span(known.map(([value]) => value));
  let [bottomValue, topValue] = span(known.map(([, value]) => value));
  if (bottomValue === topValue) [bottomValue, topValue] = [bottomValue * 0.999, topValue * 1.001 + 1e-12];
  const across = (value) => left + ((value - low) / (high - low || 1)) * (width - left - 10);
  const up = (value) => height - bottom - ((value - bottomValue) / (topValue - bottomValue)) * (height - bottom - 15);
  svg.append(
    shape('line', { class: 'axis', x1: left, y1: height - bottom, x2: width - 10, y2: height - bottom }),
    shape('line', { class: 'axis', x1: left, y1: 15, x2: left, y2: height - bottom }),
    ...lines.filter((line) => line.length > 1).map((line) => shape('polyline', { class: 'line', points: line.map(([a, b]) => `${across(a).toFixed(1)},${up(b).toFixed(1)}`).join(' ') })),
    shape('text', { x: 2, y: 20 }, y(topValue)),
    shape('text', { x: 2, y: height - bottom }, y(bottomValue)),
    shape('text', { x: left, y: height - 8 }, x(low)),
    shape('text', { x: width - 10, y: height - 8, 'text-anchor': 'end' }, x(high)),
  );
  return svg;
}

// Smallest units as whole tokens, exactly.
export function whole(units, decimals) {
  if (units === null || units === undefined) return '–';
  const digits = String(units).padStart(decimals + 1, '0');
  const [before, after] = [digits.slice(0, digits.length - decimals), digits.slice(digits.length - decimals).replace(/0+$/, '')];
  return before.replace(/\B(?=(\d{3})+$)/g, '\u202f') + (decimals > 0 && after !== '' ? `.${after}` : '');
}

// Whole tokens as smallest units, or null where it is no amount.
export function units(text, decimals) {
  const match = /^(\d+)(?:\.(\d*))?$/.exec(text.trim());
  if (match === null || (match[2] ?? '').length > decimals) return null;
  return BigInt(match[1] + (match[2] ?? '').padEnd(decimals, '0')).toString();
}

const root = document.documentElement;
const kept = localStorage.getItem('theme');
if (kept === 'light' || kept === 'dark') root.dataset.theme = kept;
byId('theme').addEventListener('click', () => {
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  localStorage.setItem('theme', root.dataset.theme);
});
for (const link of document.querySelectorAll('nav a')) if (link.pathname === location.pathname) link.setAttribute('aria-current', 'page');
